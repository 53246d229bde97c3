"""SF504: tensors are joined whose sizes, or numbers of dimensions, disagree."""

from __future__ import annotations

from collections.abc import Iterator

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
    subject,
    told,
)
from shapefix.checks.support.operands import is_unlikely
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Fix
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
        f"`{code(event)}`: {told(event, context, numbers)}; {reason}",
        evidence=evidence(event, context, numbers, reason),
        fixes=_fixes(event, error, numbers, context),
    )


def _is_of_vectors(event: OpRejected) -> bool:
    """Rows of several lengths on top of each other: that is SF303's to say."""
    ranks = {_rank(event, number) for number in range(len(event.operands))}
    return name_of(event) == "stack" and ranks == {1}


def _rank(event: OpRejected, number: int) -> int | None:
    layout = event.operands[number].layout
    return None if layout is None else layout.rank


def _reason(event: OpRejected, error: SizeMismatch | WrongRank, context: CheckContext) -> str:
    name = name_of(event)
    if isinstance(error, WrongRank):
        have = "a single number" if not error.have else f"{error.have} dimension{'s' * (error.have > 1)}"
        if name == "pad_sequence":
            return f"{have}, the first sequence has {error.want[0]}"
        return f"{have} and {error.want[0]} cannot be joined"
    sizes = f"{context.text(error.want)} and {context.text(error.have)}"
    if name == "stack":
        return f"their sizes differ in dimension {error.dim}, {sizes}, and `stack` takes equal ones"
    if name == "pad_sequence":
        return f"sizes {sizes} in dimension {error.dim} differ, and only the first dimension is padded"
    return f"sizes {sizes} in dimension {error.dim} differ, and {_along(event)}"


def _along(event: OpRejected) -> str:
    name, dim = name_of(event), _joined_dim(event)
    return f"`{name}` joins dimension {dim}" if dim is not None else f"`{name}` joins another dimension"


def _joined_dim(event: OpRejected) -> int | None:
    """The dimension that is joined, counted from the first one."""
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
            f"join dimension {error.dim}: it is the only one in which their sizes differ",
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
    """The edit that joins along another dimension."""
    node, module = event.place.node, event.place.module
    if not isinstance(node, cst.Call) or not node.args:
        return None
    given = rewrites.argument(node, 1, "dim") or rewrites.argument(node, 1, "axis")
    if given is None:
        return rewrites.appended(module, node, f"dim={dim}")
    return Edit(module.span(given.value), str(dim))


def _cropped(event: OpRejected, error: SizeMismatch, numbers: tuple[int, ...], context: CheckContext) -> Fix:
    """What is done where feature maps of a contracting and an expanding path have drifted apart."""
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
        "or feed an input whose sizes every downsampling divides",
        (),
    )


def _unsqueezed(event: OpRejected, numbers: tuple[int, ...]) -> Iterator[Fix]:
    """A dimension of size 1 for the operand that has one less, where there is one place for it."""
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
        yield Fix(Applicability.UNSAFE, f"give {subject(event, low)} the dimension that it lacks", (edit,))
