"""Origins of the sizes in conflict at a failing line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import libcst as cst

from shapefix.checks.support.literal_sites import given_to
from shapefix.checks.support.syntax import enclosing
from shapefix.diagnosis.failing_runs import FailingRun
from shapefix.diagnosis.whole_texts import whole_text
from shapefix.diagnostics import Evidence, Role, Span
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.modules import Place, children
from shapefix.interpreter.tensor_values import LayoutStep
from shapefix.interpreter.values import IntegerLiteral, LibraryObject, Value
from shapefix.sources.text import is_notebook
from shapefix.tensors.errors import (
    NotDivisible,
    SizeMismatch,
    WindowTooLarge,
    WrongNumberOfElements,
    WrongParts,
)
from shapefix.tensors.layout import Layout
from shapefix.tensors.polynomials import Size

_NUMBER = re.compile(r"\d+")
_LONGEST_CHAIN = 60
_MOST_STEPS = 8
_CODE = 60


def number_origins(run: FailingRun, message: str) -> tuple[Evidence, ...]:
    """Return the origins of the sizes of a message, or of the rejected operation."""
    found: dict[tuple[str, int], Evidence] = {}
    for place, text in _origins(run, message):
        span = _shown(place.span)
        found.setdefault((span.path, span.row), Evidence(span, text, Role.CAUSE, text))
    return tuple(found.values())[:_MOST_STEPS]


def _shown(span: Span) -> Span:
    """Return a place in its cell if it is one of a notebook."""
    if not is_notebook(span.path):
        return span
    path, row = whole_text(span.path).place(span.row)
    return replace(span, path=path, row=row, end_row=row + span.end_row - span.row)


def _origins(run: FailingRun, message: str) -> Iterator[tuple[Place, str]]:
    if run.rejected:
        event = run.rejected[0]
        numbers = _conflicting(event) or _stated(message)
        tensors = [(each.tensor.origin, each.layout) for each in event.operands]
        yield from _of_layer(event.layer, numbers)
        if isinstance(event.layer, LibraryObject):
            yield from _made(event.layer)
    else:
        numbers = _stated(message)
        here = [each for each in run.values if each.layout is not None or each.origin is not None]
        tensors = [(each.origin, each.layout) for each in here]
        for each in run.values:
            yield from _of_layer(each.value, numbers)
    for origin, layout in tensors:
        for number in sorted(numbers):
            if origin is not None and _count(layout, number):
                yield from _of_size(origin, number)


def _conflicting(event: OpRejected) -> frozenset[int]:
    """Return the numbers in conflict."""
    error = event.error
    sizes: Sequence[Size] = ()
    if isinstance(error, SizeMismatch):
        sizes = (error.have, error.want)
    elif isinstance(error, NotDivisible):
        sizes = (error.have, error.by)
    elif isinstance(error, WindowTooLarge):
        sizes = (error.window,)
    elif isinstance(error, WrongParts):
        sizes = (error.whole, *error.parts)
    elif isinstance(error, WrongNumberOfElements):
        shapes = [each.layout for each in event.operands if each.layout is not None]
        wanted = [size.value for size in error.target]
        for size in shapes[0].sizes if shapes else ():
            if size.value in wanted:
                wanted.remove(size.value)
            else:
                sizes = [*sizes, size]
    return frozenset(size.value for size in sizes if size.value is not None and size.value != 1)


def _stated(message: str) -> frozenset[int]:
    return frozenset(number for found in _NUMBER.findall(message) if (number := int(found[:12])) > 1)


def _count(layout: Layout | None, number: int) -> int:
    """Return the number of dimensions of a size."""
    return sum(size.value == number for size in layout.sizes) if layout is not None else 0


def _of_size(origin: LayoutStep, number: int) -> Iterator[tuple[Place, str]]:
    """Yield the origin of a tensor's size, and the layer before it."""
    step, left = origin, _LONGEST_CHAIN
    while (
        step.source is not None and _count(step.source.layout, number) >= _count(step.layout, number) and left
    ):
        step, left = step.source, left - 1
    yield step.place, f"{number} comes from `{_shortened(step.place.code)}`"
    while step.producer is None and step.source is not None and left:
        step, left = step.source, left - 1
    sizes = {size.value for size in step.layout.sizes} if step.layout is not None else set()
    if isinstance(step.producer, LibraryObject):
        yield from _made(step.producer)
        yield from _of_layer(step.producer, frozenset(size for size in sizes if size is not None))


def _made(layer: LibraryObject) -> Iterator[tuple[Place, str]]:
    if layer.place is not None:
        yield layer.place, f"`{_shortened(layer.place.code)}` is created here"


def _of_layer(layer: Value | None, numbers: frozenset[int]) -> Iterator[tuple[Place, str]]:
    """Yield the construction of a layer with one of some numbers, and the origin of the number."""
    if not isinstance(layer, LibraryObject) or layer.place is None:
        return
    made = list(_made(layer))
    for position, (name, value) in enumerate(layer.arguments.items()):
        number = getattr(value, "value", None)
        if not isinstance(number, int) or isinstance(number, bool) or number not in numbers:
            continue
        yield from made
        made = []
        if isinstance(value, IntegerLiteral):
            yield value.place, f"{number} is stated here"
            continue
        given = given_to(layer, position, name)
        if given is not None:
            yield from _assigned(Place(layer.place.module, given), number)


def _assigned(given: Place, number: int) -> Iterator[tuple[Place, str]]:
    """Yield the assignment of a name in the function around its use."""
    if not isinstance(given.node, cst.Name):
        return
    around = [each for each in enclosing(given.module, given.node) if isinstance(each, cst.FunctionDef)]
    for node in _statements(around[-1].body if around else given.module.tree):
        if isinstance(node, cst.Assign) and any(
            isinstance(each.target, cst.Name) and each.target.value == given.node.value
            for each in node.targets
        ):
            yield Place(given.module, node), f"`{given.node.value}` is set to {number} here"


def _statements(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in children(node):
        if isinstance(child, cst.BaseSmallStatement):
            yield child
        elif not isinstance(child, (cst.BaseExpression, cst.FunctionDef, cst.ClassDef)):
            yield from _statements(child)


def _shortened(code: str) -> str:
    code = " ".join(code.split())
    return code if len(code) <= _CODE else f"{code[: _CODE - 1]}…"
