"""Random expressions over the tensors that a program has: views, slices, copies, arithmetic, layers."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

Names = Mapping[str, Any]


@dataclass(frozen=True)
class Style:
    """literal: sizes may be written as numbers. certain: whatever decides something is known."""

    literal: bool = True
    certain: bool = False


def tensors(names: Names) -> list[str]:
    return [name for name, value in names.items() if isinstance(value, torch.Tensor)]


def expression(rng: random.Random, names: Names, style: Style) -> str | None:
    """An expression for a tensor; None where there is nothing to make one of."""
    known = tensors(names)
    filled = [name for name in known if names[name].numel()]
    if not filled:
        return None
    name = rng.choice(filled)
    kinds = [kind for kind, _ in KINDS]
    weights = [weight for _, weight in KINDS]
    code = rng.choices(kinds, weights)[0](rng, name, names, style)
    if code is not None and rng.random() < 0.15:
        copying = rng.choice(("contiguous()", "clone()", "detach()", "double()", "float()", "relu()"))
        code = f"{code}.{copying}"
    return code


def condition(rng: random.Random, names: Names, style: Style) -> str:
    """A condition: of sizes, of flags, of the data, of what nobody can tell, of two of these."""
    forms = ["True", "False"] if style.certain else ["coin()", "coin()", "count() > 1", "True", "not coin()"]
    if "flag" in names:
        forms += ["flag", "flag", "not flag"]
    for name in rng.sample(tensors(names), min(2, len(tensors(names)))):
        dim = names[name].dim()
        forms += [f"{name}.dim() == {dim}", f"{name}.is_contiguous()"]
        forms += [] if style.certain else [f"{name}.sum() > 0"]
        if dim:
            at = rng.randrange(dim)
            forms += [f"{name}.size({at}) > 1", f"{name}.shape[{at}] == {names[name].shape[at]}"]
    loops = [name for name in names if name.startswith("loop")]
    forms += [f"{name} == {rng.randint(0, 1)}" for name in loops]
    first = rng.choice(forms)
    if rng.random() < 0.15:
        return f"{first} {rng.choice(('and', 'or'))} {rng.choice(forms)}"
    return first


def size(rng: random.Random, name: str, dim: int, names: Names, style: Style) -> str:
    """The size of a dimension, in one of the ways that people write it."""
    rank, value = names[name].dim(), names[name].shape[dim]
    forms = [f"{name}.size({dim})", f"{name}.shape[{dim}]", f"{name}.size({dim - rank})"]
    forms += [n for n, v in names.items() if type(v) is int and v == value and not n.startswith("loop")][:3]
    if style.literal:
        forms += [str(value)] * 3
    return rng.choice(forms)


def viewed(rng: random.Random, name: str, names: Names, style: Style) -> str | None:
    """A view that merges and splits dimensions."""
    value = names[name]
    if value.dim() == 0:
        return f"{name}.view(1)"
    groups: list[list[int]] = [[0]]
    for dim in range(1, value.dim()):
        if rng.random() < 0.5:
            groups[-1].append(dim)
        else:
            groups.append([dim])
    target: list[str] = []
    for group in groups:
        sizes = [size(rng, name, dim, names, style) for dim in group]
        if len(group) == 1 and value.shape[group[0]] % 2 == 0 and rng.random() < 0.2:
            target += [f"{sizes[0]} // 2", "2"]
        elif len(group) > 1 and rng.random() < 0.2 and value.shape[group[0]] % 2 == 0:
            target += ["2", f"{' * '.join(sizes)} // 2"]
        else:
            target.append(" * ".join(sizes))
    if rng.random() < 0.5:
        target[rng.randrange(len(target))] = "-1"
    inner = ", ".join(target)
    if rng.random() < 0.2:
        inner = f"({inner},)"
    return f"{name}.{rng.choice(('view', 'view', 'view', 'reshape'))}({inner})"


def moved(rng: random.Random, name: str, names: Names, style: Style) -> str | None:
    rank = names[name].dim()
    if rank < 2:
        return f"{name}.unsqueeze({rng.randint(0, rank)})"
    order = rng.sample(range(rank), rank)
    first, second = rng.sample(range(rank), 2)
    return rng.choice(
        [
            f"{name}.transpose({first}, {second - rank})",
            f"{name}.transpose({first}, {second})",
            f"torch.transpose({name}, {first}, {second})",
            f"{name}.permute({', '.join(map(str, order))})",
            f"{name}.permute({tuple(order)})",
            f"{name}.mT",
            f"{name}.movedim({first}, {second})",
            f"{name}.unsqueeze({rng.randint(-1, rank)})",
            f"{name}.squeeze()" if rng.random() < 0.2 else f"{name}.squeeze({first})",
            f"{name}.flatten({min(first, second)}, {max(first, second)})",
            f"{name}.T" if rank == 2 else f"{name}.swapaxes({first}, {second})",
        ]
    )


def sliced(rng: random.Random, name: str, names: Names, style: Style) -> str | None:
    value = names[name]
    if value.dim() == 0:
        return f"{name}[None]"
    entries = []
    for dim in range(value.dim()):
        last = value.shape[dim] - 1
        choices = [":", ":", ":", "1:", ":-1", "::2", ":2", "-1:", str(rng.randint(0, last)), "-1", "None, :"]
        if dim == 0:
            choices += ["..., :1", "..., 0", "[0]", "torch.arange(1)"]
        entries.append(rng.choice(choices))
        if entries[-1].startswith("..."):
            break
        if rng.random() < 0.3 and dim < value.dim() - 1:
            # An index that stops short of the last dimension is taken to name them all.
            entries.append("...")
            break
    if not style.certain and "..." not in entries[-1]:
        # An index with a slice for each dimension tells the rank, which may be another one by then.
        entries.append("...")
    code = f"{name}[{', '.join(entries)}]"
    at = rng.randrange(value.dim())
    half = max(1, value.shape[at] // 2)
    others = [f"{name}.narrow({at}, 0, {half})", f"{name}.select({at}, 0)", f"{name}[{name} > 0]"]
    return rng.choice([code, code, code, *others])


def expanded(rng: random.Random, name: str, names: Names, style: Style) -> str | None:
    rank = names[name].dim()
    return rng.choice(
        [
            f"{name}.unsqueeze(0).expand({rng.randint(1, 3)}, {', '.join(['-1'] * rank) or '-1'})",
            f"{name}[None].expand(2, *{name}.shape)",
            f"{name}.expand(2, *{name}.shape)",
            f"{name}.repeat({', '.join(['2'] + ['1'] * max(rank - 1, 0))})",
            f"{name}.expand_as({rng.choice(tensors(names))})",
        ]
    )


def computed(rng: random.Random, name: str, names: Names, style: Style) -> str | None:
    other = rng.choice(tensors(names))
    return rng.choice(
        [
            f"{name} + {other}",
            f"{other} * {name}",
            f"{name} + {name}.mT",
            f"{name} * 2.0",
            f"1 - {name}",
            f"F.relu({name})",
            f"torch.where({name} > 0, {name}, {other})",
            f"torch.cat([{name}, {other}], dim=-1)",
            f"torch.stack([{name}, {name}], dim={rng.choice((0, -1))})",
            f"{name} @ {other}",
            f"{name} if {condition(rng, names, style)} else {other}",
            f"torch.zeros_like({name})",
            f"{name}.masked_fill({name} > 0, 0)",
            f"{name}.new_zeros({name}.shape)",
        ]
    )


def reduced(rng: random.Random, name: str, names: Names, style: Style) -> str | None:
    rank = names[name].dim()
    dim = rng.randrange(rank) if rank else 0
    return rng.choice(
        [
            f"{name}.sum({dim})",
            f"{name}.mean(dim={dim}, keepdim=True)",
            f"{name}.softmax(-1)",
            f"{name}.max({dim}).values",
            f"{name}.max(dim={dim})[0]",
            f"{name}.argmax(-1)",
            f"{name}.cumsum({dim})",
            f"{name}.sort(dim={dim})[0]",
            f"{name}.topk(1, dim={dim})[1]",
        ]
    )


def layered(rng: random.Random, name: str, names: Names, style: Style) -> str | None:
    value = names[name]
    if not value.dim() or not value.is_floating_point():
        return None
    width = value.shape[-1] if style.literal else f"{name}.size(-1)"
    forms = [
        f"nn.Linear({width}, {rng.choice((2, 4))})({name})",
        f"nn.LayerNorm({width})({name})",
        f"nn.Embedding(10, 4)(({name} > 0).long())",
        f"F.dropout({name}, 0.1)",
    ]
    if value.dim() == 3:
        # They take a matrix, too, but what they are given is taken to be a batch.
        forms += [
            f"nn.GRU({width}, 2, batch_first=True)({name})[0]",
            f"nn.LSTM({width}, 4)({name})[0]",
            f"nn.MultiheadAttention({width}, 1, batch_first=True)({name}, {name}, {name})[0]",
        ]
    if value.dim() in (3, 4):
        channels = value.shape[1] if style.literal else f"{name}.size(1)"
        forms += [f"nn.Conv{value.dim() - 2}d({channels}, 2, 1)({name})"] * 2
    return rng.choice(forms)


KINDS: list[tuple[Callable[[random.Random, str, Names, Style], str | None], int]] = [
    (viewed, 16),
    (moved, 10),
    (sliced, 6),
    (expanded, 2),
    (computed, 6),
    (reduced, 3),
    (layered, 3),
]
