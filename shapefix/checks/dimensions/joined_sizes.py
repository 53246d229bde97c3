"""SF504: concatenated tensors with different sizes or numbers of dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.operand_pairs import (
    changed,
    code,
    concerned,
    differing,
    evidence,
    insertions,
    name_of,
    shown_together,
    subject,
)
from shapefix.checks.support.operands import is_unlikely
from shapefix.checks.support.torch_errors import torch_error
from shapefix.diagnostics import Applicability, Diagnostic, Edit, ExpectedError, Fix
from shapefix.interpreter.events import OpRejected
from shapefix.tensors.bounds import at_least
from shapefix.tensors.errors import ShapeError, SizeMismatch, WrongRank
from shapefix.tensors.layout import wrap_dim
from shapefix.tensors.polynomials import Size

_CATS = frozenset({"cat", "concat", "concatenate"})
_FUNCTIONS = _CATS | {"stack", "hstack", "vstack", "dstack", "row_stack", "pad_sequence"}


@rule("SF504", on=OpRejected)
def joined_sizes(event: OpRejected, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if event.layer is not None or name_of(event) not in _FUNCTIONS or is_unlikely(event):
        return
    error = event.error
    if not isinstance(error, (SizeMismatch, WrongRank)) or _is_of_vectors(event):
        return
    numbers = concerned(event)
    if isinstance(error, WrongRank):
        other = next((n for n, each in enumerate(event.operands) if _rank(event, n) in error.want), None)
        numbers = tuple(sorted({*numbers, *(() if other is None else (other,))}))
    reason = _reason(event, error, context)
    yield rule.diagnostic(
        event.place.span,
        f"`{code(event)}`: {shown_together(event, context, numbers)}; {reason}",
        error=_error(event, context),
        evidence=evidence(event, context, numbers, reason),
        fixes=_fixes(event, error, numbers, context),
    )


def _error(event: OpRejected, context: CheckContext) -> ExpectedError | None:
    """Return the exception of torch, with the number of the concatenated dimension if that is known."""
    error, joined = torch_error(event, context), _joined_dim(event)
    if error is None or joined is None or not error.message.endswith(" dimension"):
        return error
    return replace(error, message=f"{error.message} {joined}")


def _is_of_vectors(event: OpRejected) -> bool:
    """Whether the operands are vectors of several lengths, as reported by SF303."""
    ranks = {_rank(event, number) for number in range(len(event.operands))}
    return name_of(event) == "stack" and ranks == {1}


def _rank(event: OpRejected, number: int) -> int | None:
    layout = event.operands[number].layout
    return None if layout is None else layout.rank


def _reason(event: OpRejected, error: SizeMismatch | WrongRank, context: CheckContext) -> str:
    name = name_of(event)
    if isinstance(error, WrongRank):
        if name == "pad_sequence":
            have = f"{error.have} dimension{'' if error.have == 1 else 's'}"
            return f"{have}, but the first sequence has {error.want[0]}"
        return f"tensors must have the same number of dimensions: got {error.have} and {error.want[0]}"
    sizes = f"{context.text(error.want)} and {context.text(error.have)}"
    if name == "stack":
        return (
            f"`stack` expects each tensor to be equal size, but sizes {sizes} in dimension {error.dim} differ"
        )
    if name == "pad_sequence":
        return f"sizes {sizes} in dimension {error.dim} differ, but only the first dimension is padded"
    joined = _joined_dim(event)
    if joined is None:
        return f"sizes {sizes} in dimension {error.dim} differ"
    return f"sizes must match except in dimension {joined}, but are {sizes} in dimension {error.dim}"


def _joined_dim(event: OpRejected) -> int | None:
    """Return the number of the concatenated dimension, counted from the first one."""
    name, rank = name_of(event), _rank(event, 0)
    if name in ("vstack", "row_stack"):
        return 0
    if name in ("hstack", "dstack"):
        return 2 if name == "dstack" else 1
    node = event.place.node
    if not isinstance(node, cst.Call) or rank is None:
        return None
    given = rewrites.argument(node, 1, "dim") or rewrites.argument(node, 1, "axis")
    if given is None:
        return 0
    number = _number(given.value)
    try:
        return None if number is None else wrap_dim(number, rank)
    except ShapeError:
        return None


def _number(node: cst.BaseExpression) -> int | None:
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = _number(node.expression)
        return None if inner is None else -inner
    return int(node.value) if isinstance(node, cst.Integer) and node.value.isdigit() else None


def _fixes(
    event: OpRejected, error: SizeMismatch | WrongRank, numbers: tuple[int, ...], context: CheckContext
) -> Iterator[Fix]:
    if name_of(event) not in _CATS or len(numbers) != 2:
        return
    if isinstance(error, WrongRank):
        yield from _unsqueezed(event, numbers)
        return
    dim = _joined_dim(event)
    if dim is None:
        return
    edit = _other_dim(event, error.dim)
    if _differ_only(event, error.dim) and edit is not None:
        yield Fix(
            Applicability.UNSAFE,
            f"concatenate along dimension {error.dim}, the only one with different sizes",
            (edit,),
        )
    elif dim == 1 and error.dim > 1:
        yield _cropped(event, error, numbers, context)


def _differ_only(event: OpRejected, dim: int) -> bool:
    """Whether all sizes besides those in dim are known to be the same."""
    first = event.operands[0].layout
    if first is None:
        return False
    layouts = [operand.layout for operand in event.operands[1:]]
    return all(layout is not None and differing(first.sizes, layout.sizes) == [dim] for layout in layouts)


def _other_dim(event: OpRejected, dim: int) -> Edit | None:
    """Return the edit to concatenate along another dimension."""
    node, module = event.place.node, event.place.module
    if not isinstance(node, cst.Call) or not node.args:
        return None
    given = rewrites.argument(node, 1, "dim") or rewrites.argument(node, 1, "axis")
    if given is None:
        return rewrites.appended(module, node, f"dim={dim}")
    return Edit(module.span(given.value), str(dim))


def _cropped(event: OpRejected, error: SizeMismatch, numbers: tuple[int, ...], context: CheckContext) -> Fix:
    """Suggest cropping or resizing feature maps of a contracting and an expanding path."""
    assert error.other is not None
    have, want = error.have, error.want
    first_is_larger = at_least(have - want, 1) is True
    larger, smaller = (error.operand, error.other) if first_is_larger else (error.other, error.operand)
    layout = event.operands[smaller].layout
    sizes: tuple[Size, ...] = () if layout is None else layout.sizes[2:]
    one, other = subject(event, larger), subject(event, smaller)
    target = context.shape(sizes)
    return Fix(
        Applicability.DISPLAY,
        f"crop {one} to {target}, resize {other} with `F.interpolate(…, size={one.strip('`')}.shape[2:])`, "
        "or use inputs divisible by every downsampling factor",
        (),
    )


def _unsqueezed(event: OpRejected, numbers: tuple[int, ...]) -> Iterator[Fix]:
    """Suggest unsqueezing the operand with one dimension less, if only one position is possible."""
    low, high = sorted(numbers, key=lambda number: _rank(event, number) or 0)
    one, two = event.operands[low].layout, event.operands[high].layout
    if one is None or two is None or one.rank + 1 != two.rank:
        return
    node = event.place.node
    given = rewrites.argument(node, 1, "dim") if isinstance(node, cst.Call) else None
    number = 0 if given is None else _number(given.value)
    if number is None:
        return
    dim = number + two.rank if number < 0 else number
    places = list(insertions(one.sizes, two.sizes, dim))
    edit = changed(event, low, f"unsqueeze({places[0]})") if len(places) == 1 else None
    if edit is not None:
        yield Fix(
            Applicability.UNSAFE,
            f"add the missing dimension to {subject(event, low)}: `.unsqueeze({places[0]})`",
            (edit,),
        )
