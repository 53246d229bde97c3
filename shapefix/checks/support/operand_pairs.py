"""Texts and edits for two tensors of incompatible sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace, shape_trace
from shapefix.checks.support.operands import code_of, named, shown
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Edit, Evidence
from shapefix.interpreter.events import OpRejected
from shapefix.tensors.bounds import same
from shapefix.tensors.errors import SizeMismatch, WrongRank
from shapefix.tensors.layout import Layout
from shapefix.tensors.polynomials import ONE, Size

_EACH = 3
"""Number of steps in the evidence of each of two tensors."""


def name_of(event: OpRejected) -> str:
    """Return the last part of the operation's name: `cat`, `matmul`, `add`."""
    return event.function.rpartition(".")[2]


def concerned(event: OpRejected) -> tuple[int, ...]:
    """Return the numbers of the operands of the error, in order."""
    error = event.error
    numbers: set[int] = set()
    if isinstance(error, SizeMismatch):
        numbers = {error.operand} if error.other is None else {error.operand, error.other}
    elif isinstance(error, WrongRank):
        numbers = {error.operand}
    return tuple(sorted(number for number in numbers if number < len(event.operands)))


def shown_together(event: OpRejected, context: CheckContext, numbers: Sequence[int]) -> str:
    """Return "`x` is f32[2, 3] and `y` is f32[4, 3]"."""
    parts = [f"{subject(event, number)} is {shown(event.operands[number], context)}" for number in numbers]
    return " and ".join(parts)


def subject(event: OpRejected, number: int) -> str:
    """Return the code of an operand, or "operand 2" if it has no code of its own."""
    words = named(event, number)
    return f"operand {number + 1}" if words == "the input" else words


def code(event: OpRejected) -> str:
    """Return the rejected code, for a message."""
    node = event.place.node
    text = event.place.code
    if isinstance(node, cst.BaseExpression) and len(node.lpar) == 1:
        text = text.removeprefix("(").removesuffix(")").strip()
    return abbreviate(text)


def evidence(event: OpRejected, context: CheckContext, numbers: Sequence[int], reason: str) -> list[Evidence]:
    """Return the calls, the steps of the operands, and the reason of the mismatch."""
    traces = [shape_trace(event.operands[number].tensor, context)[-_EACH:] for number in numbers]
    steps = list(dict.fromkeys(step for steps in traces for step in steps))
    return [*call_trace(event), *steps, Evidence(event.place.span, reason)]


def changed(event: OpRejected, number: int, method: str) -> Edit | None:
    """Return the edit to call a method of an operand, or None if it has no code of its own."""
    node = code_of(event, number)
    if node is None:
        return None
    return rewrites.method_called(event.place.module, node, method)


def insertions(short_sizes: Sequence[Size], long_sizes: Sequence[Size], free: int = -1) -> Iterator[int]:
    """Yield positions for a dimension of size 1 to make the sizes match; dimension free may differ."""
    for place in range(len(short_sizes) + 1):
        sizes = (*short_sizes[:place], ONE, *short_sizes[place:])
        rest = [dim for dim in range(len(sizes)) if dim not in (place, free)]
        stretches = free < 0 or place == free or same(long_sizes[place], 1) is True
        if stretches and all(same(sizes[dim], long_sizes[dim]) is True for dim in rest):
            yield place


def swapped(layout: Layout) -> Layout | None:
    """Return the layout with its last two dimensions swapped, or None if nothing would change."""
    if layout.rank < 2 or same(layout.sizes[-1], layout.sizes[-2]) is True:
        return None
    sizes, strides = layout.sizes, layout.strides
    return Layout(
        (*sizes[:-2], sizes[-1], sizes[-2]),
        (*strides[:-2], strides[-1], strides[-2]),
    )


def differing(one: Sequence[Size], two: Sequence[Size]) -> list[int]:
    """Return the dimensions of two shapes without provably equal sizes."""
    return [
        dim for dim, (a, b) in enumerate(zip_longest(one, two)) if a is None or b is None or not same(a, b)
    ]
