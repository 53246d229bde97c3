"""Random chains of tensor operations, run side by side by torch and by the algebra."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from shapefix.tensors import legality, verdicts
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, contiguous, sizes_of, unknown_strides
from shapefix.tensors.layout import substitute as layout_with
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import substitute
from shapefix.tensors.symbols import Atom, Symbol

VALUES = (1, 1, 1, 2, 2, 3, 4, 5, 6)
"""Sizes to draw from: 1 hides bugs, so it comes often."""

BACKEND = ("pool", "roll", "conv", "mask")
"""Operations whose strides may be unknown even for numbers."""

FORMATS = ("pool", "roll", "conv", "cat", "stack", "pad")
"""Operations that detect channels_last from the strides of all dimensions, including those of size 1."""

Convert = Callable[[Size], Size]
Torch = Callable[[Tensor], Tensor]
Ours = Callable[[Layout, Convert], Layout | None]


@dataclass(frozen=True)
class Step:
    """One operation: its text, torch's function, and the algebra's over constants or symbols."""

    text: str
    torch: Torch
    ours: Ours


@dataclass
class Chain:
    """A torch tensor and its two layouts: over constants, and over symbols with the given values."""

    tensor: Tensor
    concrete: Layout
    symbolic: Layout | None
    values: dict[Symbol, int | Size]
    text: list[str] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)

    def number(self, size: Size) -> int:
        value = substitute(size, self.values).value
        assert value is not None, f"{size} has symbols without values"
        return value

    def constant(self, size: Size) -> Size:
        return Size.of(self.number(size))

    def sizes(self) -> tuple[Size, ...]:
        return self.symbolic.sizes if self.symbolic is not None else self.concrete.sizes


def start(rng: random.Random, opaque: bool = False) -> Chain:
    """Start a chain with a contiguous tensor of symbolic sizes, or one of unknown strides if opaque."""
    rank = rng.choice((1, 2, 3, 3, 3, 4, 4))
    values: dict[Symbol, int | Size] = {}
    sizes = []
    for name in rng.sample("BTVHDC", rank):
        number = rng.choice(VALUES)
        if rng.random() < 0.15:
            sizes.append(Size.of(number))
            continue
        size = Size.symbol(name, 2 if number > 1 and rng.random() < 0.2 else 1)
        (symbol,) = size.symbols
        values[symbol] = number
        sizes.append(size)
    shape = [substitute(size, values).value or 0 for size in sizes]
    drawn = ", ".join(f"{symbol}={value}" for symbol, value in values.items())
    text = [f"{drawn}; ({', '.join(map(str, sizes))})"]
    if not opaque:
        return Chain(torch.zeros(shape), contiguous(shape), contiguous(sizes), values, text)
    order = rng.sample(range(rank), rank)
    gaps = [rng.choice((0, 0, 1)) for _ in order]
    storage = torch.zeros([shape[dim] + gap for dim, gap in zip(order, gaps, strict=True)])
    for place, dim in enumerate(order):
        storage = storage.narrow(place, 0, shape[dim])
    tensor = storage.permute([order.index(dim) for dim in range(rank)])
    symbolic = unknown_strides(sizes)
    for stride, number in zip(symbolic.strides, tensor.stride(), strict=True):
        (symbol,) = stride.symbols
        values[symbol] = number
    text.append(f"strides {tensor.stride()}")
    return Chain(tensor, Layout(sizes_of(shape), sizes_of(tensor.stride())), symbolic, values, text)


def advance(chain: Chain, step: Step) -> bool:
    """Run one step on all three sides and compare them. Returns whether torch accepted it."""
    chain.text.append(step.text)
    where = " . ".join(chain.text)
    if step.text.startswith(FORMATS):
        chain.symbolic = chain.symbolic if regular(chain) else None
    refused = ""
    try:
        tensor = step.torch(chain.tensor)
    except (RuntimeError, IndexError, ValueError) as error:
        refused = f"torch: {error}"
    concrete, refused_by_numbers = attempt(step, chain.concrete, chain.constant)
    assert bool(refused) == bool(refused_by_numbers), f"{where}: {refused} {refused_by_numbers}"
    symbolic = None
    if chain.symbolic is not None:
        symbolic, refused_by_symbols = attempt(step, chain.symbolic, lambda size: size)
        assert refused or not refused_by_symbols, f"{where}: {refused_by_symbols}"
    if refused:
        return False
    assert concrete is not None, f"{where}: numbers are always known"
    chain.tensor, chain.concrete = tensor, concrete
    chain.symbolic = symbolic if tensor.numel() else None
    compare(chain, where)
    return True


def attempt(step: Step, layout: Layout, convert: Convert) -> tuple[Layout | None, str]:
    """Layout after a step, or None and the text of the error."""
    try:
        return step.ours(layout, convert), ""
    except ShapeError as error:
        return None, f"ours: {error}"


def regular(chain: Chain) -> bool:
    """Check that torch's strides equal the symbolic ones, including those of dimensions of size 1."""
    if chain.symbolic is None:
        return False
    strides = [substitute(stride, chain.values).value for stride in chain.symbolic.strides]
    return strides == list(chain.tensor.stride())


def compare(chain: Chain, where: str) -> None:
    """Compare both layouts with torch, except the strides of dimensions of size 1 and of empty tensors."""
    tensor = chain.tensor
    counted = [dim for dim in range(tensor.dim()) if tensor.shape[dim] != 1 and tensor.numel()]
    assert chain.concrete.rank == tensor.dim(), where
    for size, number in zip(chain.concrete.sizes, tensor.shape, strict=True):
        bind(chain, size, number)
    chain.concrete = layout_with(chain.concrete, chain.values)
    assert tuple(size.value for size in chain.concrete.sizes) == tuple(tensor.shape), (
        f"{where}: {chain.concrete}"
    )
    got = {dim: chain.concrete.strides[dim].value for dim in counted}
    wanted = {dim: tensor.stride(dim) for dim in counted}
    if not chain.text[-1].startswith(BACKEND) or None not in got.values():
        assert got == wanted, f"{where}: {chain.concrete}, torch {tuple(tensor.shape)} {tensor.stride()}"
    # The next operation over constants starts from torch's strides of dimensions of size 1, too.
    chain.concrete = Layout(chain.concrete.sizes, sizes_of(tensor.stride()))
    if chain.symbolic is None:
        return
    assert chain.symbolic.rank == tensor.dim(), where
    for size, number in zip(chain.symbolic.sizes, tensor.shape, strict=True):
        bind(chain, size, number)
        value = substitute(size, chain.values).value
        if value is None:
            # A symbol created on the way, such as the length of a slice of unknown ends, is part of an atom.
            chain.symbolic = None
            return
        assert value == number, f"{where}: {chain.symbolic}, {tuple(tensor.shape)}"
    # The stride of a dimension of size 1 does not determine other strides over the same symbol.
    for dim in sorted(range(tensor.dim()), key=lambda dim: dim not in counted):
        bind(chain, chain.symbolic.strides[dim], tensor.stride(dim))
    found = {dim: substitute(chain.symbolic.strides[dim], chain.values).value for dim in counted}
    assert found == wanted, f"{where}: {chain.symbolic}, {tuple(tensor.shape)} {tensor.stride()}"


def bind(chain: Chain, size: Size, number: int) -> None:
    """Bind a symbol created by an operation, such as an unknown stride, to torch's value."""
    symbol = size.only_symbol
    if symbol is not None and not isinstance(symbol, Atom):
        chain.values.setdefault(symbol, number)


def judge(chain: Chain, target: list[Size], minus_one: int | None) -> None:
    """Compare the verdicts of torch, constants and symbols on a view."""
    shape = [-1 if place == minus_one else chain.number(size) for place, size in enumerate(target)]
    wanted = ", ".join("-1" if place == minus_one else str(size) for place, size in enumerate(target))
    where = f"{' . '.join(chain.text)} . view({wanted})"
    try:
        viewed = chain.tensor.view(shape)
        accepted = True
    except RuntimeError:
        accepted = False
    verdict = legality.view(chain.concrete, [chain.constant(size) for size in target], minus_one)
    assert isinstance(verdict, verdicts.Legal) == accepted, f"{where}: torch {accepted}, numbers {verdict}"
    assert not isinstance(verdict, verdicts.Undecided), where
    if accepted and isinstance(verdict, verdicts.Legal):
        compare(Chain(viewed, verdict.layout, None, chain.values, [where]), where)
    chain.verdicts["concrete"] += 1
    if chain.symbolic is None or not chain.tensor.numel():
        return
    symbolic = legality.view(chain.symbolic, target, minus_one)
    chain.verdicts[type(symbolic).__name__] += 1
    if isinstance(symbolic, verdicts.Undecided) and symbolic.numel:
        chain.verdicts["numel"] += 1
    if isinstance(symbolic, verdicts.WrongNumel):
        assert not accepted, f"{where}: torch accepts, symbols: {symbolic}"
    if isinstance(symbolic, verdicts.Illegal) and all(chain.number(size) > 1 for size in symbolic.conditions):
        assert not accepted, f"{where}: torch accepts, symbols: {symbolic}"
        chain.verdicts["Illegal applies"] += 1
    if isinstance(symbolic, verdicts.Legal):
        assert accepted, f"{where}: torch refuses, symbols: {symbolic}"
        layout = Layout(sizes_of(viewed.shape), sizes_of(viewed.stride()))
        compare(Chain(viewed, layout, symbolic.layout, chain.values, [where]), where)


def random_target(chain: Chain, rng: random.Random) -> tuple[list[Size], int | None]:
    """Random sizes for a view: neighbors merged, constants split, sizes shuffled, ones added, a -1."""
    sizes = list(chain.sizes())
    if rng.random() < 0.15:
        rng.shuffle(sizes)
    target: list[Size] = []
    for size in sizes:
        if target and rng.random() < 0.45:
            target[-1] = target[-1] * size
        elif size.value is not None and size.value % 2 == 0 and size.value and rng.random() < 0.3:
            target += [Size.of(2), Size.of(size.value // 2)]
        else:
            target.append(size)
    if rng.random() < 0.03:
        target.append(rng.choice((Size.of(2), *sizes)))
    for _ in range(rng.choice((0, 0, 0, 1))):
        target.insert(rng.randint(0, len(target)), Size.of(1))
    minus_one = rng.randrange(len(target)) if target and rng.random() < 0.4 else None
    return target, minus_one
