"""SF510: elementwise operations and writes with operands of incompatible sizes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.operand_pairs import (
    changed,
    code,
    concerned,
    evidence,
    insertions,
    name_of,
    shown_together,
    subject,
)
from shapefix.checks.support.operands import code_of, is_unlikely
from shapefix.checks.support.torch_errors import torch_error
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Fix
from shapefix.interpreter.events import OpRejected
from shapefix.tensors.bounds import at_least, same
from shapefix.tensors.errors import ShapeError, SizeMismatch, WrongRank
from shapefix.tensors.ops import BINARY_NAMES, OPERATORS
from shapefix.tensors.polynomials import Size
from shapefix.tensors.tensor_iterator import broadcast_sizes

_BOTH = frozenset(BINARY_NAMES) | {
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "copy",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "where",
}
_EXPANDED = frozenset({"expand", "expand_as", "broadcast_to"})
_INDEXED = frozenset({"gather", "scatter", "scatter_add", "index_add", "index_copy", "index_select"})
_DISTANCES = frozenset({"cosine_similarity", "pairwise_distance", "cdist"})
_ITEMS = frozenset({"setitem", "getitem"})
_WIDE = 7
"""The smallest kernel that may be meant to cover a whole dimension."""


@rule("SF510", on=OpRejected)
def broadcast_sizes_differ(event: OpRejected, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if not _is_ours(event) or is_unlikely(event):
        return
    error, numbers = event.error, concerned(event)
    if not isinstance(error, (SizeMismatch, WrongRank)) or not numbers:
        return
    if isinstance(error, WrongRank):
        numbers = tuple(range(min(len(event.operands), 3)))
    if isinstance(error, SizeMismatch) and _may_be_covered(error):
        return
    reason = _reason(event, error, context)
    conditions = _strongest(error.conditions) if isinstance(error, SizeMismatch) else ()
    yield rule.diagnostic(
        event.place.span,
        f"`{code(event)}`: {shown_together(event, context, numbers)}; {reason}",
        error=torch_error(event, context),
        evidence=evidence(event, context, numbers, reason),
        condition=context.condition(conditions) if conditions else None,
        fixes=_fixes(event, error),
    )


def _may_be_covered(error: SizeMismatch) -> bool:
    """Whether a size is 1 for inputs as long as a wide kernel, made to cover all of them."""
    if not error.conditions:
        return False
    lost = (error.have - error.want).value
    return lost is not None and abs(lost) >= _WIDE - 1


def _strongest(sizes: tuple[Size, ...]) -> tuple[Size, ...]:
    """Return the sizes required to exceed 1, without those larger than another one of them."""
    return tuple(
        size for size in sizes if not any(at_least(size - other, 1) for other in sizes if other is not size)
    )


def _is_ours(event: OpRejected) -> bool:
    space, _, name = event.function.rpartition(".")
    if event.layer is not None:
        return False
    if space == "operator":
        return name in (*OPERATORS, "iadd", *_ITEMS)
    plain = name.removesuffix("_")
    if name in _DISTANCES:
        return True
    return space in ("torch", "torch.Tensor") and plain in _BOTH | _EXPANDED | _INDEXED


def _reason(event: OpRejected, error: SizeMismatch | WrongRank, context: CheckContext) -> str:
    name = name_of(event)
    if isinstance(error, WrongRank):
        if name in _INDEXED or name.removesuffix("_") in _INDEXED:
            return f"{_dimensions(error.have)}, but {_dimensions(error.want[-1])} expected"
        return f"{_dimensions(error.have)} cannot be broadcast to {_dimensions(error.want[-1])}"
    have, want = context.text(error.have), context.text(error.want)
    if name == "setitem":
        return f"size {have} cannot be broadcast to {want}, the size of the assigned part"
    if name == "getitem":
        return f"the mask has size {have}, but the tensor has {want}"
    if name == "cdist":
        return f"their last sizes, {want} and {have}, differ"
    if name in _EXPANDED:
        return f"only a size of 1 can be expanded to {want}, not {have}"
    if name.removesuffix("_") in _INDEXED:
        return f"size {have} in dimension {error.dim}, but {want} expected"
    if _grows(event, error):
        return f"an in-place operation cannot grow size {want} in dimension {error.other_dim} to {have}"
    if error.dim == error.other_dim:
        return f"sizes {have} and {want} in dimension {error.dim} cannot be broadcast"
    return (
        f"size {have} in dimension {error.dim} cannot be broadcast with {want} in dimension {error.other_dim}"
    )


def _dimensions(rank: int) -> str:
    return "1 dimension" if rank == 1 else f"{rank} dimensions"


def _is_in_place(event: OpRejected) -> bool:
    return name_of(event) == "iadd" or name_of(event).endswith("_")


def _grows(event: OpRejected, error: SizeMismatch) -> bool:
    """Whether the written tensor would have to become larger."""
    return _is_in_place(event) and error.other == 0 and error.want.value == 1


def _fixes(event: OpRejected, error: SizeMismatch | WrongRank) -> Iterator[Fix]:
    name = name_of(event)
    if _is_in_place(event):
        yield from _not_in_place(event)
        return
    if isinstance(error, WrongRank) and name in ("gather", "scatter_add"):
        yield from _index_unsqueezed(event)
    if name in _ITEMS or name.removesuffix("_") in _EXPANDED | _INDEXED or len(event.operands) != 2:
        return
    if not isinstance(error, SizeMismatch):
        return
    if error.conditions:
        yield Fix(Applicability.DISPLAY, "slice both the same way, `[:, :-1]` or `[:, 1:]`", ())
        return
    found = _unsqueezed(event) or _transposed(event)
    if found is not None:
        yield found


def _unsqueezed(event: OpRejected) -> Fix | None:
    """Suggest unsqueezing the operand with one dimension less, if only one position is possible."""
    layouts = [operand.layout for operand in event.operands]
    ranks = [-1 if layout is None else layout.rank for layout in layouts]
    low = 0 if ranks[0] < ranks[1] else 1
    one, two = layouts[low], layouts[1 - low]
    if one is None or two is None or one.rank + 1 != two.rank or not one.rank:
        return None
    places = list(insertions(one.sizes, two.sizes))
    if len(places) != 1:
        return None
    place = -1 if places[0] == one.rank else places[0]
    edit = changed(event, low, f"unsqueeze({place})")
    if edit is None:
        return None
    message = f"add a dimension of size 1 to {subject(event, low)}: `.unsqueeze({place})`"
    return Fix(Applicability.UNSAFE, message, (edit,))


def _index_unsqueezed(event: OpRejected) -> Iterator[Fix]:
    """Suggest a last dimension for an index without one: one class per position."""
    if len(event.operands) < 2:
        return
    one, index = event.operands[0].layout, event.operands[1].layout
    if one is None or index is None or index.rank + 1 != one.rank or not index.rank:
        return
    if all(same(a, b) is True for a, b in zip(one.sizes, index.sizes, strict=False)):
        edit = changed(event, 1, "unsqueeze(-1)")
        if edit is not None:
            message = f"add the indexed dimension to {subject(event, 1)}: `.unsqueeze(-1)`"
            yield Fix(Applicability.UNSAFE, message, (edit,))


def _transposed(event: OpRejected) -> Fix | None:
    """Suggest swapping the last two dimensions of the second operand, if the sizes match then."""
    one, two = event.operands[0].layout, event.operands[1].layout
    if one is None or two is None or one.rank != two.rank or one.rank < 2:
        return None
    swapped = (*two.sizes[:-2], two.sizes[-1], two.sizes[-2])
    if not all(same(a, b) is True for a, b in zip(one.sizes, swapped, strict=True)):
        return None
    edit = changed(event, 1, "T" if two.rank == 2 else "transpose(-2, -1)")
    if edit is None:
        return None
    return Fix(Applicability.UNSAFE, f"swap the last two dimensions of {subject(event, 1)}", (edit,))


def _not_in_place(event: OpRejected) -> Iterator[Fix]:
    """Suggest `x = x + y` for `x += y`, if the result has the sizes of y.

    A result with more elements than both is seldom meant: a column plus a row is a table.
    """
    node, module = event.place.node, event.place.module
    layouts = [operand.layout for operand in event.operands]
    if not isinstance(node, cst.AugAssign) or len(layouts) != 2 or None in layouts:
        return
    known = [layout.sizes for layout in layouts if layout is not None]
    try:
        sizes = broadcast_sizes(*known)
    except ShapeError:
        return
    if len(sizes) != len(known[1]) or not all(
        same(a, b) is True for a, b in zip(sizes, known[1], strict=True)
    ):
        yield Fix(
            Applicability.DISPLAY, "give both the same sizes; their broadcast is larger than either", ()
        )
        return
    symbol = module.code(node.operator).strip().removesuffix("=")
    target, value = module.code(node.target), module.code(node.value)
    if not isinstance(code_of(event, 1), (cst.Name, cst.Attribute, cst.Call, cst.Subscript)):
        value = f"({value})"
    edit = Edit(module.span(node), f"{target} = {target} {symbol} {value}")
    yield Fix(Applicability.UNSAFE, "create a new tensor instead of writing in place", (edit,))
