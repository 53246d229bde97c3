"""einops: a pattern is a reshape (split), a permute, an expand for new axes, and a reshape (merge).

A pure permutation is a view; a merge after it is a copy if a view would be rejected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain

from shapefix.interpreter.calls import Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, LibraryObject, Value, as_size, as_tensor
from shapefix.library.nn.module import MODULE
from shapefix.library.registry import declare, function, method
from shapefix.library.rejections import reject
from shapefix.library.signatures import bound
from shapefix.library.tensors import as_result, as_view, assume_rank
from shapefix.light_dataclasses import dataclass
from shapefix.tensors import dims, legality, views
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, contiguous
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import ONE, Size, product
from shapefix.tensors.quotients import quotient
from shapefix.tensors.verdicts import Legal

Group = tuple[str, ...]
"""The axes of one dimension; none for a dimension of size 1."""

_MOST_AXES = 200
"""The number of axes of a pattern that is followed; torch has 64 dimensions."""
_DOTS: Group = ("... outside of parentheses",)
_SIGNATURES = {
    "rearrange": "tensor, pattern",
    "repeat": "tensor, pattern",
    "reduce": "tensor, pattern, reduction",
}
"""Parameters of the functions; all other keywords are lengths of axes."""
_LAYERS = {"Rearrange": "rearrange", "Reduce": "reduce"}
_TOKEN = re.compile(r"\.\.\.|\(|\)|\w+")


@dataclass(frozen=True)
class EinopsPattern:
    """Both sides of `b t (h d) -> b h t d`."""

    left: tuple[Group, ...]
    right: tuple[Group, ...]


def parse(text: str) -> EinopsPattern | None:
    """Parse a pattern; None if the text is not a valid one."""
    left, arrow, right = text.partition("->")
    sides = _groups(left), _groups(right)
    if not arrow or sides[0] is None or sides[1] is None:
        return None
    return EinopsPattern(sides[0], sides[1])


def _groups(side: str) -> tuple[Group, ...] | None:
    groups: list[Group] = []
    inside: list[str] | None = None
    for token in _TOKEN.findall(side):
        if token == "(":
            if inside is not None:
                return None
            inside = []
        elif token == ")":
            if inside is None:
                return None
            groups.append(tuple(inside))
            inside = None
        elif inside is not None:
            if token != "1":
                inside.append(token)
        else:
            groups.append(() if token == "1" else _DOTS if token == "..." else (token,))
    return None if inside is not None else tuple(groups)


def _spread(groups: tuple[Group, ...], dots: Group) -> tuple[Group, ...]:
    """Replace `...` in groups by its axes: one dimension each outside of parentheses."""
    spread: list[Group] = []
    for group in groups:
        if group == _DOTS:
            spread.extend((axis,) for axis in dots)
        else:
            spread.append(tuple(chain.from_iterable(dots if axis == "..." else (axis,) for axis in group)))
    return tuple(spread)


def _lengths(left: Sequence[Group], layout: Layout, named: dict[str, Size]) -> dict[str, Size] | None:
    """Lengths of the axes on the left; None if a dimension has two axes of unknown length."""
    lengths = dict(named)
    for group, size in zip(left, layout.sizes, strict=True):
        missing = [axis for axis in group if axis not in lengths]
        if len(missing) > 1:
            return None
        if missing:
            known = product([lengths[axis] for axis in group if axis in lengths])
            lengths[missing[0]] = size if known.value == 1 else quotient(size, known)
    return lengths


@dataclass(frozen=True)
class _Shaped:
    """Layout, and whether it still uses the tensor's memory."""

    layout: Layout
    is_view: bool = True

    def reshaped(self, sizes: Sequence[Size]) -> _Shaped:
        verdict = legality.view(self.layout, tuple(sizes), None)
        if isinstance(verdict, Legal):
            return _Shaped(verdict.layout, self.is_view)
        return _Shaped(views.reshape(self.layout, tuple(sizes)), False)


def _applied(
    call: Call, subject: Value | None, pattern: Value | None, axes: dict[str, Value], operation: str
) -> Value:
    tensor = as_tensor(subject)
    text = pattern.value if isinstance(pattern, Constant) else None
    parsed = parse(text) if isinstance(text, str) else None
    if tensor is None or parsed is None or call.arguments.open:
        return TensorValue()
    if sum(map(len, (*parsed.left, *parsed.right))) > _MOST_AXES:
        return TensorValue(dtype=tensor.dtype)
    named = {name: size for name, size in ((name, as_size(value)) for name, value in axes.items()) if size}
    if len(named) < len(axes):
        return TensorValue(dtype=tensor.dtype)
    for axis in chain.from_iterable((*parsed.left, *parsed.right)):
        if axis.isdigit():
            named[axis] = Size.of(int(axis))
    try:
        return _followed(call, tensor, parsed, named, operation)
    except ShapeError as error:
        reject(call, error, {"tensor": tensor}, function=f"einops.{operation}")
        return TensorValue(dtype=tensor.dtype)


def _followed(
    call: Call, tensor: TensorValue, pattern: EinopsPattern, named: dict[str, Size], operation: str
) -> Value:
    tensor.certain = True
    left, right = pattern.left, pattern.right
    dots: Group = ()
    if _DOTS in left:
        if tensor.layout is None:
            return TensorValue(dtype=tensor.dtype)
        dots = tuple(f"...{place}" for place in range(tensor.layout.rank - len(left) + 1))
        left = _spread(left, dots)
    layout = assume_rank(call, tensor, len(left))
    right = _spread(right, dots)
    lengths = _lengths(left, layout, named) if len(left) == layout.rank else None
    if lengths is None or any(axis not in lengths for group in right for axis in group):
        return TensorValue(dtype=tensor.dtype)
    have = list(chain.from_iterable(left))
    want = list(chain.from_iterable(right))
    sizes = [product([lengths[axis] for axis in group]) if group else ONE for group in right]
    if operation == "reduce" and set(have) - set(want):
        return as_result(call, contiguous(sizes), Op.REDUCTION, dtype=tensor.dtype, device=tensor.device)
    if set(have) - set(want) or len(set(want)) != len(want):
        return TensorValue(dtype=tensor.dtype)
    shaped = _Shaped(layout).reshaped([lengths[axis] for axis in have])
    order = [have.index(axis) for axis in want if axis in have]
    current = dims.permute(shaped.layout, order)
    for place, axis in enumerate(want):
        if axis not in have:
            current = dims.unsqueeze(current, place)
    if len(have) < len(want):
        current = dims.expand(current, [lengths[axis] for axis in want])
    merged = _Shaped(current, shaped.is_view).reshaped(sizes)
    if merged.is_view:
        return as_view(call, tensor, merged.layout, Op.REARRANGE)
    return as_result(call, merged.layout, Op.REARRANGE, dtype=tensor.dtype, device=tensor.device)


@function("einops.rearrange", "einops.repeat", "einops.reduce")
def transform(call: Call) -> Value:
    operation = call.name.rpartition(".")[2]
    given = bound(_SIGNATURES[operation], call.arguments)
    return _applied(call, given["tensor"], given["pattern"], _axes(call, given), operation)


def _axes(call: Call, given: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in call.arguments.keywords.items() if name not in given}


@function(*(f"einops.layers.torch.{layer}" for layer in _LAYERS))
def make_layer(call: Call) -> Value:
    signature = _SIGNATURES[_LAYERS[call.name.rpartition(".")[2]]].removeprefix("tensor, ")
    given = bound(signature, call.arguments)
    return LibraryObject(call.name, _axes(call, given), call.place, {"pattern": given["pattern"]})


for _layer in _LAYERS:
    declare(f"einops.layers.torch.{_layer}", MODULE)


@method("einops.layers.torch.Rearrange", "forward")
@method("einops.layers.torch.Reduce", "forward")
def apply_layer(call: Call) -> Value:
    layer = call.receiver
    if not isinstance(layer, LibraryObject):
        return TensorValue()
    operation = _LAYERS[layer.kind.rpartition(".")[2]]
    return _applied(
        call,
        bound("input", call.arguments)["input"],
        layer.fields["pattern"],
        dict(layer.arguments),
        operation,
    )
