"""Random operations of chains that slice, reorder or view a tensor."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import torch
from random_chains import Chain, Convert, Step, Torch, random_target

from shapefix.tensors import dims, indexing, legality, verdicts, views
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, contiguous
from shapefix.tensors.polynomials import Size


def step(text: str, torch: Torch, ours: Callable[[Layout], Layout | None]) -> Step:
    """Operation without sizes among its arguments."""
    return Step(text, torch, lambda layout, convert: ours(layout))


def some_dim(chain: Chain, rng: random.Random) -> int:
    """Random dimension, counted from either end, sometimes out of range."""
    rank: int = chain.tensor.dim()
    if rng.random() < 0.02:
        return rank + 1
    return rng.randint(-max(rank, 1), max(rank, 1) - 1)


def a_slice(chain: Chain, rng: random.Random) -> Step | None:
    rank = chain.tensor.dim()
    if not rank:
        return None
    dim = rng.randrange(rank)
    bound = rng.choice((None, 1, 2, -1, -2))
    part = rng.choice((slice(None, bound), slice(bound, None), slice(None, None, 2), slice(1, -1)))
    dots = rng.random() < 0.3 and dim == rank - 1
    specs: list[indexing.Spec] = [Ellipsis, part] if dots else [*[slice(None)] * dim, part]
    if rng.random() < 0.15:
        specs.insert(rng.randint(0, len(specs)), None)
    return index_step(specs)


def index_step(specs: list[indexing.Spec]) -> Step:
    """Basic indexing."""
    return step(f"index{specs}", lambda x: x[tuple(specs)], lambda layout: indexing.index(layout, specs))


def a_symbolic_slice(chain: Chain, rng: random.Random) -> Step | None:
    rank = chain.tensor.dim()
    if not rank:
        return None
    dim, k = rng.randrange(rank), rng.randint(1, 5)
    stop = Size.symbol("k")
    (symbol,) = stop.symbols
    chain.values[symbol] = k

    def ours(layout: Layout, convert: Convert) -> Layout:
        return indexing.index(layout, [slice(None)] * dim + [slice(None, convert(stop))])

    return Step(f"[:k={k}] in {dim}", lambda x: x[(slice(None),) * dim + (slice(None, k),)], ours)


def a_select(chain: Chain, rng: random.Random) -> Step | None:
    dim, place = some_dim(chain, rng), rng.choice((0, 0, -1, -1, 1))
    if rng.random() < 0.5 or not chain.tensor.dim():
        return step(
            f"select({dim}, {place})",
            lambda x: x.select(dim, place),
            lambda layout: indexing.select(layout, dim, place),
        )
    return index_step([slice(None)] * (dim % chain.tensor.dim()) + [place])


def a_narrow(chain: Chain, rng: random.Random) -> Step | None:
    if not chain.tensor.dim():
        return None
    dim, off = rng.randrange(chain.tensor.dim()), rng.randint(0, 2)
    first = rng.choice((0, 0, off, 1))
    length = chain.sizes()[dim] - off
    number = chain.number(length)
    return Step(
        f"narrow({dim}, {first}, {length})",
        lambda x: x.narrow(dim, first, number),
        lambda layout, convert: indexing.narrow(layout, dim, first, convert(length)),
    )


def a_piece(chain: Chain, rng: random.Random) -> Step | None:
    """A piece of chunk, split or unbind."""
    if not chain.tensor.dim():
        return None
    dim = rng.randrange(chain.tensor.dim())
    kind = rng.choice(("chunk", "split", "split list", "unbind"))
    size = chain.sizes()[dim]
    number = chain.tensor.shape[dim]
    if kind == "chunk":
        count = rng.randint(1, 3)
        if len(chain.tensor.chunk(count, dim)) != count:
            return None
        place = rng.randrange(count)
        return step(
            f"chunk({count}, {dim})[{place}]",
            lambda x: x.chunk(count, dim)[place],
            lambda layout: indexing.chunk(layout, count, dim)[place],
        )
    if kind == "unbind":
        return (
            None
            if not number
            else step(
                f"unbind({dim})[-1]",
                lambda x: x.unbind(dim)[-1],
                lambda layout: pick(indexing.unbind(layout, dim), -1),
            )
        )
    if kind == "split":
        each = rng.choice((1, 2, 3))
        return step(
            f"split({each}, {dim})[-1]",
            lambda x: x.split(each, dim)[-1],
            lambda layout: pick(indexing.split(layout, each, dim), -1),
        )
    parts = [Size.of(1), size - 1]
    numbers = [chain.number(part) for part in parts]
    return Step(
        f"split([1, {size - 1}], {dim})[1]",
        lambda x: x.split(numbers, dim)[1],
        lambda layout, convert: pick(indexing.split(layout, [convert(part) for part in parts], dim), 1),
    )


def pick(pieces: Sequence[Layout] | None, place: int) -> Layout | None:
    return None if pieces is None else pieces[place]


def a_permutation(chain: Chain, rng: random.Random) -> Step | None:
    rank = chain.tensor.dim()
    one, two = some_dim(chain, rng), some_dim(chain, rng)
    order = rng.sample(range(rank), rank)
    return rng.choice(
        (
            step(
                f"transpose({one}, {two})",
                lambda x: x.transpose(one, two),
                lambda a: dims.transpose(a, one, two),
            ),
            step(
                f"transpose({one}, {two})",
                lambda x: x.transpose(one, two),
                lambda a: dims.transpose(a, one, two),
            ),
            step(f"permute{order}", lambda x: x.permute(order), lambda a: dims.permute(a, order)),
            step(
                f"movedim({one}, {two})", lambda x: x.movedim(one, two), lambda a: dims.movedim(a, one, two)
            ),
            step("mT", lambda x: x.mT, dims.mT),
            step("t", lambda x: x.t(), dims.t),
        )
    )


def a_new_dimension(chain: Chain, rng: random.Random) -> Step | None:
    rank = chain.tensor.dim()
    if rank > 4:
        return None
    dim = rng.randint(-rank - 1, rank)
    return step(f"unsqueeze({dim})", lambda x: x.unsqueeze(dim), lambda a: dims.unsqueeze(a, dim))


def a_squeeze(chain: Chain, rng: random.Random) -> Step | None:
    if rng.random() < 0.3:
        return step("squeeze()", lambda x: x.squeeze(), dims.squeeze)
    dim = some_dim(chain, rng)
    return step(f"squeeze({dim})", lambda x: x.squeeze(dim), lambda a: dims.squeeze(a, dim))


def an_expansion(chain: Chain, rng: random.Random) -> Step | None:
    rank = chain.tensor.dim()
    if rank > 4:
        return None
    if rank and rng.random() < 0.6:
        dim, times = rng.randrange(rank), rng.randint(1, 3)
        wanted = [-1] * rank
        wanted[dim] = times
        # A dimension narrowed to size 1 can expand.
        return step(
            f"[{dim}: 1].expand{wanted}",
            lambda x: x.narrow(dim, 0, 1).expand(wanted),
            lambda a: dims.expand(indexing.narrow(a, dim, 0, 1), wanted),
        )
    sizes = (Size.of(rng.randint(1, 3)), *chain.sizes())
    numbers = [chain.number(size) for size in sizes]
    return Step(
        f"expand({', '.join(map(str, sizes))})",
        lambda x: x.expand(numbers),
        lambda a, convert: dims.expand(a, [convert(size) for size in sizes]),
    )


def an_advanced_index(chain: Chain, rng: random.Random) -> Step | None:
    rank = chain.tensor.dim()
    if not rank or not chain.tensor.numel() or rank > 4:
        return None
    specs: list[indexing.Spec] = []
    entries: list[object] = []
    scattered = rng.random() < 0.4
    for size in chain.tensor.shape:
        kind = (
            rng.choice(("all", "all", "indices", "int", "slice", "none"))
            if scattered or not entries
            else "all"
        )
        if kind == "indices":
            shape = rng.choice(([2], [2], [1], [2, 2], [3, 2]))
            if specs and any(isinstance(spec, indexing.IntegerIndex) for spec in specs):
                shape = [2]
            specs.append(indexing.IntegerIndex(contiguous(shape)))
            entries.append(torch.zeros(shape, dtype=torch.long))
        elif kind == "int":
            specs.append(size - 1)
            entries.append(size - 1)
        else:
            if kind == "none":
                specs.append(None)
                entries.append(None)
            part = slice(None, -1) if kind == "slice" and size > 1 else slice(None)
            specs.append(part)
            entries.append(part)
    if not any(isinstance(spec, indexing.IntegerIndex) for spec in specs):
        width = rng.randint(1, rank)
        at = rng.randint(0, rank - width)
        mask = torch.rand(chain.tensor.shape[at : at + width]) > 0.3
        sizes = chain.sizes()[at : at + width]

        def ours(layout: Layout, convert: Convert) -> Layout:
            return indexing.index(
                layout, [slice(None)] * at + [indexing.BooleanIndex(tuple(map(convert, sizes)))]
            )

        return Step(f"mask of {width} at {at}", lambda x: x[(slice(None),) * at + (mask,)], ours)
    return step(
        f"index{entries}",
        lambda x: x[tuple(entries)],
        lambda layout: indexing.index(layout, specs),
    )


def a_reshape(chain: Chain, rng: random.Random) -> Step | None:
    """reshape, flatten or unflatten."""
    rank = chain.tensor.dim()
    kind = rng.choice(("reshape", "reshape", "flatten", "unflatten"))
    if kind == "flatten":
        one, two = some_dim(chain, rng), some_dim(chain, rng)
        return step(
            f"flatten({one}, {two})", lambda x: x.flatten(one, two), lambda a: views.flatten(a, one, two)
        )
    if kind == "unflatten":
        dim = rng.randrange(rank) if rank else 0
        if not rank or not chain.tensor.shape[dim]:
            return None
        return step(
            f"unflatten({dim}, (1, -1))",
            lambda x: x.unflatten(dim, (1, -1)),
            lambda a: accepted(views.unflatten(a, dim, (1, -1), 1)),
        )
    target, minus_one = random_target(chain, rng)
    numbers = [-1 if place == minus_one else chain.number(size) for place, size in enumerate(target)]
    return Step(
        f"reshape({', '.join('-1' if p == minus_one else str(s) for p, s in enumerate(target))})",
        lambda x: x.reshape(numbers),
        lambda a, convert: views.reshape(a, [convert(size) for size in target], minus_one),
    )


def a_view(chain: Chain, rng: random.Random) -> Step | None:
    """Random view that torch accepts; the chain continues with its result."""
    target, minus_one = random_target(chain, rng)
    numbers = [-1 if place == minus_one else chain.number(size) for place, size in enumerate(target)]
    try:
        chain.tensor.view(numbers)
    except RuntimeError:
        return None
    return Step(
        f"view({', '.join('-1' if p == minus_one else str(s) for p, s in enumerate(target))})",
        lambda x: x.view(numbers),
        lambda a, convert: accepted(legality.view(a, [convert(size) for size in target], minus_one)),
    )


def accepted(verdict: verdicts.ViewVerdict) -> Layout | None:
    """Layout of a view that torch accepts; None for an illegal view whose conditions do not hold."""
    if isinstance(verdict, verdicts.WrongNumel):
        raise ShapeError("wrong number of elements")
    return None if isinstance(verdict, verdicts.Illegal) else verdict.layout


def an_odd_layout(chain: Chain, rng: random.Random) -> Step | None:
    rank = chain.tensor.dim()
    if rank < 1 or rank > 4:
        return None
    one, two, offset = some_dim(chain, rng), some_dim(chain, rng), rng.choice((0, 0, 1, -1))
    if rank > 1 and rng.random() < 0.5:
        return step(
            f"diagonal({offset}, {one}, {two})",
            lambda x: x.diagonal(offset, one, two),
            lambda a: indexing.diagonal(a, offset, one, two),
        )
    size, every = rng.randint(1, 3), rng.randint(1, 2)
    return step(
        f"unfold({one}, {size}, {every})",
        lambda x: x.unfold(one, size, every),
        lambda a: indexing.unfold(a, one, size, every),
    )
