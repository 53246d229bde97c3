"""SF503: matrix products of operands with mismatched shapes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.layer_settings import has_batch_second
from shapefix.checks.support.operand_pairs import (
    changed,
    code,
    concerned,
    evidence,
    name_of,
    shown_together,
    subject,
    swapped,
)
from shapefix.checks.support.operands import is_unlikely
from shapefix.checks.support.torch_errors import torch_error
from shapefix.diagnostics import Applicability, Diagnostic, Fix
from shapefix.interpreter.events import OpRejected
from shapefix.tensors import products
from shapefix.tensors.bounds import same
from shapefix.tensors.errors import ShapeError, SizeMismatch, WrongDtype, WrongRank
from shapefix.tensors.layout import Layout
from shapefix.tensors.products import LetterMismatch

_TAKES = {
    "mm": ("a matrix", "a matrix"),
    "bmm": ("a batch of matrices", "a batch of matrices"),
    "mv": ("a matrix", "a vector"),
    "dot": ("a vector", "a vector"),
    "outer": ("a vector", "a vector"),
    "ger": ("a vector", "a vector"),
}
_ADDED = frozenset({"addmm", "baddbmm", "addbmm", "addmv"})
_ATTENTION = "scaled_dot_product_attention"
_OTHERS = frozenset({"matmul", "einsum", "linear", _ATTENTION})
_LAYERS = frozenset(
    f"torch.nn.{kind}"
    for kind in (
        "MultiheadAttention",
        "TransformerEncoderLayer",
        "TransformerDecoderLayer",
        "TransformerEncoder",
        "TransformerDecoder",
        "Transformer",
    )
)
_BATCHED = _LAYERS - {"torch.nn.TransformerEncoder", "torch.nn.TransformerDecoder"}
"""Layers with the option `batch_first` of their own."""
_FUNCTIONS = frozenset({*_TAKES, *_ADDED, *_OTHERS})


@rule("SF503", on=OpRejected)
def matrix_product(event: OpRejected, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if not _is_product(event) or is_unlikely(event):
        return
    error, numbers = event.error, concerned(event)
    if isinstance(error, WrongDtype) or not event.operands:
        return
    if isinstance(error, (SizeMismatch, WrongRank)) and not numbers:
        return
    reason = _reason(event, error, context)
    numbers = numbers or tuple(range(min(len(event.operands), 2)))
    yield rule.diagnostic(
        event.place.span,
        f"`{code(event)}`: {shown_together(event, context, numbers)}; {reason}",
        error=torch_error(event, context),
        evidence=evidence(event, context, numbers, reason),
        fixes=() if event.layer is not None else _fixes(event, error),
    )


def _is_product(event: OpRejected) -> bool:
    if event.layer is None:
        return name_of(event) in _FUNCTIONS
    error = event.error
    # SF501 reports inputs of another size than the layer was created with.
    return event.function in _LAYERS and isinstance(error, SizeMismatch) and error.other is not None


def _reason(event: OpRejected, error: ShapeError, context: CheckContext) -> str:
    name = name_of(event)
    if isinstance(error, LetterMismatch):
        have, want = context.text(error.have), context.text(error.want)
        return f"`{error.letter}` is both {have} and {want}"
    if isinstance(error, WrongRank):
        return _wrong_rank(event, error)
    if not isinstance(error, SizeMismatch):
        return str(error).removeprefix("einsum(): ")
    have, want = context.text(error.have), context.text(error.want)
    if error.other is None:
        meant = "the mask" if name == _ATTENTION else "the added tensor"
        return f"size {have} of {meant} cannot be broadcast to {want} in dimension {error.dim}"
    if event.layer is not None:
        one, other = subject(event, error.operand), subject(event, error.other)
        note = ""
        layout = event.operands[0].layout
        is_batched = event.function in _BATCHED and layout is not None and layout.rank == 3
        if is_batched and has_batch_second(event.layer) and error.dim == error.other_dim:
            meaning = {0: "the sequence", 1: "the batch"}.get(error.dim)
            note = f"; without `batch_first=True`, dimension {error.dim} is {meaning}" if meaning else ""
        sizes = f"{have} in dimension {error.dim} of {one}"
        return f"{sizes}, but {want} in dimension {error.other_dim} of {other}{note}"
    if _is_inner(event, error):
        if name == "linear":
            return f"last size {have}, but the weight expects {want}"
        if name == _ATTENTION:
            one, other = subject(event, error.operand), subject(event, error.other)
            return f"last sizes {have} of {one} and {want} of {other} differ"
        one, other = _line(event, error.operand, "column"), _line(event, error.other, "row")
        return f"{have} {one} and {want} {other} cannot be multiplied"
    if name == _ATTENTION and error.operand == 1:
        return f"{have} keys, but {want} values"
    if name == "linear":
        return f"the bias has {have} elements for {want} features"
    return f"batch sizes {have} and {want} differ"


def _line(event: OpRejected, number: int, what: str) -> str:
    """Name the parts of an operand's dimension: columns, rows, or the elements of a vector."""
    layout = event.operands[number].layout
    return "elements" if layout is not None and layout.rank == 1 else f"{what}s"


def _is_inner(event: OpRejected, error: SizeMismatch) -> bool:
    """Whether the summed sizes differ, not those of batches."""
    one = event.operands[error.operand].layout
    assert error.other is not None
    two = event.operands[error.other].layout
    if one is None or two is None or error.dim != one.rank - 1:
        return False
    if name_of(event) in (_ATTENTION, "linear"):
        return error.other_dim == two.rank - 1 and error.operand == 0
    return error.other_dim == max(two.rank - 2, 0)


def _wrong_rank(event: OpRejected, error: WrongRank) -> str:
    name, dimensions = name_of(event), "1 dimension" if error.have == 1 else f"{error.have} dimensions"
    if name in _TAKES and error.operand < 2:
        return f"`{name}` expects {_TAKES[name][error.operand]}, not {dimensions}"
    if error.have == 0:
        return "a 0-dim tensor cannot be multiplied as a matrix"
    if name == "einsum":
        return f"{dimensions} for {error.want[0]} letters"
    return f"`{name}` does not accept {dimensions} there"


def _fixes(event: OpRejected, error: ShapeError) -> Iterator[Fix]:
    first = 1 if name_of(event) in _ADDED else 0
    sides = event.operands[first : first + 2]
    if len(sides) < 2 or name_of(event) in _OTHERS - {"matmul"}:
        return
    left, right = sides[0].layout, sides[1].layout
    if left is None or right is None:
        return
    instead = _matmul_instead(event, left, right)
    if instead is not None:
        yield instead
    elif isinstance(error, SizeMismatch) and error.other is not None and _is_inner(event, error):
        yield from _transposed(event, first, left, right)


def _matmul_instead(event: OpRejected, left: Layout, right: Layout) -> Fix | None:
    """Suggest `torch.matmul` for a function of other ranks, if the shapes match then."""
    node, name = event.place.node, name_of(event)
    if name not in ("mm", "bmm", "mv") or not isinstance(node, cst.Call) or not _multiplies(left, right):
        return None
    if name == "bmm" and left.rank != right.rank:
        # Each matrix of one side would meet each matrix of the other.
        return None
    edit = rewrites.renamed(event.place.module, node.func, "matmul")
    return Fix(Applicability.UNSAFE, "use `matmul`, which accepts tensors of any rank", (edit,))


def _multiplies(left: Layout, right: Layout) -> bool:
    """Whether two layouts provably can be multiplied."""
    try:
        products.matmul(left, right)
    except ShapeError:
        return False
    return same(left.sizes[-1], right.sizes[-2] if right.rank > 1 else right.sizes[0]) is True


def _transposed(event: OpRejected, first: int, left: Layout, right: Layout) -> Iterator[Fix]:
    """Suggest swapping the last two dimensions of one operand, if the shapes match then."""
    other_left, other_right = swapped(left), swapped(right)
    by_left = other_left is not None and _multiplies(other_left, right)
    by_right = other_right is not None and _multiplies(left, other_right)
    if by_left and by_right and left.rank > 2:
        # Two batches of rows: compare every row with every other one.
        by_left = False
    if by_left == by_right:
        if by_left:
            one, other = subject(event, first), subject(event, first + 1)
            yield Fix(
                Applicability.DISPLAY, f"transpose {other} to compare rows, {one} to compare columns", ()
            )
        return
    number = first + by_right
    method = "T" if (right if by_right else left).rank == 2 else "transpose(-2, -1)"
    edit = changed(event, number, method)
    if edit is not None:
        yield Fix(Applicability.UNSAFE, f"swap the last two dimensions of {subject(event, number)}", (edit,))
