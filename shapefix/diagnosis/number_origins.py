"""Origins of the sizes in conflict at a failing line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import libcst as cst

from shapefix.checks.support.literal_sites import given_to
from shapefix.checks.support.syntax import enclosing
from shapefix.diagnosis.failing_runs import FailingRun
from shapefix.diagnosis.size_origins import setting_of, settings_named
from shapefix.diagnosis.whole_texts import whole_text
from shapefix.diagnostics import Evidence, Role, Span
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.modules import Place, children
from shapefix.interpreter.tensor_values import LayoutStep
from shapefix.interpreter.values import Constant, IntegerLiteral, LibraryObject, Value
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

Origin = tuple[Span, str]
"""A place, and its part in a value."""

_NUMBER = re.compile(r"\d+")
_DIMENSION = re.compile(r"at non-singleton dimension (\d{1,2})\b")
_SMALL = 9
"""The largest size that another dimension has by coincidence, as the channels of an image."""
_LONGEST_CHAIN = 60
_MOST_STEPS = 8
_MOST_ORIGINS = 200
_CODE = 60
_RESULTS = ("out_features", "out_channels", "embedding_dim", "hidden_size")
"""Settings of layers for a size of the result."""


def number_origins(run: FailingRun, message: str) -> tuple[Evidence, ...]:
    """Return the origins of the sizes of a message, or of the rejected operation."""
    return to_evidence(_origins(run, message))


def producer_origins(run: FailingRun) -> tuple[Evidence, ...]:
    """Return the constructions of the layers before the tensors of a failing line."""
    steps = (each.origin for each in run.values if each.origin is not None)
    return to_evidence(
        found
        for step in steps
        if isinstance(step.producer, LibraryObject) and step.producer.kind.startswith("torch.nn.")
        for found in (*made_here(step.producer), *owner_of(run, step.producer))
    )


def to_evidence(origins: Iterable[Origin]) -> tuple[Evidence, ...]:
    """Return the first origins as evidence, one for each row."""
    return distinct_places(
        Evidence(_shown(place), text, Role.CAUSE, text) for place, text in islice(origins, _MOST_ORIGINS)
    )


def distinct_places(places: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return the first places, one for each row."""
    found: dict[tuple[str, int], Evidence] = {}
    for each in places:
        found.setdefault((each.span.path, each.span.row), each)
    return tuple(found.values())[:_MOST_STEPS]


def _shown(span: Span) -> Span:
    """Return a place in its cell if it is one of a notebook."""
    if not is_notebook(span.path):
        return span
    path, row = whole_text(span.path).place(span.row)
    return replace(span, path=path, row=row, end_row=row + span.end_row - span.row)


def _origins(run: FailingRun, message: str) -> Iterator[Origin]:
    if run.rejected:
        event = run.rejected[0]
        numbers = _conflicting(event) or _stated(message)
        tensors = [(each.tensor.origin, each.layout) for each in event.operands]
        yield from _of_layer(event.layer, numbers, run.folder)
        if isinstance(event.layer, LibraryObject):
            yield from made_here(event.layer)
            yield from owner_of(run, event.layer)
        yield from _stated_elsewhere(run, numbers)
    else:
        numbers = _stated(message)
        here = [each for each in run.values if each.layout is not None or each.origin is not None]
        tensors = [(each.origin, each.layout) for each in here]
        for each in run.values:
            yield from _of_layer(each.value, numbers, run.folder)
    stated = None if run.rejected else _DIMENSION.search(message)
    for origin, layout in tensors:
        for number in sorted(numbers):
            if stated is not None and number <= _SMALL and not _is_at(layout, number, int(stated[1])):
                continue
            if origin is not None and _count(layout, number):
                yield from _of_size(run, origin, number)


def _stated_elsewhere(run: FailingRun, numbers: frozenset[int]) -> Iterator[Origin]:
    """Yield the places of numbers with a name in the failing line: an argument, a setting."""
    for each in run.values:
        value = each.value
        if not isinstance(value, IntegerLiteral) or value.place.node is each.place.node:
            continue
        if value.value in numbers:
            yield value.place.span, f"{value.value} is stated here"


def first_step(step: LayoutStep) -> LayoutStep:
    """Return the first operation of a tensor."""
    left = _LONGEST_CHAIN
    while step.source is not None and left:
        step, left = step.source, left - 1
    return step


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


def _is_at(layout: Layout | None, number: int, dimension: int) -> bool:
    """Whether a dimension has a size."""
    sizes = layout.sizes if layout is not None else ()
    return dimension < len(sizes) and sizes[dimension].value == number


def _count(layout: Layout | None, number: int) -> int:
    """Return the number of dimensions of a size."""
    return sum(size.value == number for size in layout.sizes) if layout is not None else 0


def _of_size(run: FailingRun, origin: LayoutStep, number: int) -> Iterator[Origin]:
    """Yield the origin of a tensor's size, and the layers before it."""
    step, left = origin, _LONGEST_CHAIN
    while step.source is not None and left and not _sets_size(step.producer, number):
        if _count(step.source.layout, number) < _count(step.layout, number):
            break
        step, left = step.source, left - 1
    yield step.place.span, f"{number} comes from `{_shortened(step.place.code)}`"
    # The other tensors of a concatenation or sum.
    for node in nodes(step.place.node):
        if node in run.objects and step.producer is None:
            yield from _of_producer(run, run.objects[node], step)
    while step.producer is None and step.source is not None and left:
        step, left = step.source, left - 1
    yield from _of_producer(run, step.producer, step)


def _of_producer(run: FailingRun, layer: Value | None, step: LayoutStep) -> Iterator[Origin]:
    if isinstance(layer, LibraryObject) and layer.kind.startswith("torch.nn."):
        sizes = {size.value for size in step.layout.sizes} if step.layout is not None else set()
        yield from made_here(layer)
        yield from owner_of(run, layer)
        yield from _of_layer(layer, frozenset(size for size in sizes if size is not None), run.folder)


def owner_of(run: FailingRun, layer: LibraryObject) -> Iterator[Origin]:
    """Yield the call of the class or function with the creation of a layer."""
    call = run.owners.get(id(layer))
    if call is not None:
        yield call, "the layer is created by this call"


def _sets_size(layer: Value | None, number: int) -> bool:
    """Whether a layer gives its result this size, for any input."""
    if not isinstance(layer, LibraryObject):
        return False
    return any(_number_of(layer.arguments.get(name)) == number for name in _RESULTS)


def made_here(layer: LibraryObject) -> Iterator[Origin]:
    """Yield the construction of a layer."""
    if layer.place is not None:
        yield layer.place.span, f"`{_shortened(layer.place.code)}` is created here"


def _of_layer(layer: Value | None, numbers: frozenset[int], folder: str) -> Iterator[Origin]:
    """Yield the construction of a layer with one of some numbers, and the origin of the number."""
    if not isinstance(layer, LibraryObject) or layer.place is None:
        return
    names = [name for name, value in layer.arguments.items() if _number_of(value) in numbers]
    if names:
        yield from made_here(layer)
        yield from settings_of(layer, names, folder)


def _setting(place: Place, number: int, folder: str) -> Iterator[Origin]:
    """Yield the only place of a setting with this number in the project: of a configuration, or an option."""
    given, name = place.node, ""
    if isinstance(given, cst.Attribute):
        name = given.attr.value
    elif isinstance(given, cst.Subscript) and isinstance(given.slice[0].slice, cst.Index):
        key = given.slice[0].slice.value
        name = str(key.evaluated_value) if isinstance(key, cst.SimpleString) else ""
    origin = setting_of(name, str(number), folder, place.module.path) if name else None
    if origin is not None:
        span = Span(origin.path, origin.row, 1, origin.row, len(origin.code) + 1)
        yield span, f"`{name}` is {number} here: {origin.code}"


def settings_of(layer: LibraryObject, names: Sequence[str], folder: str) -> Iterator[Origin]:
    """Yield the origins of the numbers of some settings of a layer."""
    for position, (name, value) in enumerate(layer.arguments.items()):
        number = _number_of(value)
        if name not in names or layer.place is None:
            continue
        if number is None:
            yield from _only_setting(layer, position, name, folder)
            continue
        if isinstance(value, IntegerLiteral):
            yield value.place.span, f"{number} is stated here"
            continue
        given = given_to(layer, position, name)
        if given is None:
            continue
        place = Place(layer.place.module, given)
        found = list(assigned(place, str(number)))
        yield from found or _setting(place, number, folder)


def _only_setting(layer: LibraryObject, position: int, name: str, folder: str) -> Iterator[Origin]:
    """Yield the only place of a setting with an unknown number, as in `Embedding(config.vocab_size, 8)`."""
    given = given_to(layer, position, name)
    key = given.attr.value if isinstance(given, cst.Attribute) else ""
    found = settings_named(key, folder, layer.place.module.path) if key and layer.place is not None else ()
    if len(found) == 1:
        origin = found[0].origin
        span = Span(origin.path, origin.row, 1, origin.row, len(origin.code) + 1)
        yield span, f"`{key}` is {found[0].number} here: {origin.code}"


def _number_of(value: Value | None) -> int | None:
    number = value.value if isinstance(value, Constant) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def assigned(given: Place, value: str) -> Iterator[Origin]:
    """Yield the assignments of a name in the function or file around its use."""
    if not isinstance(given.node, cst.Name):
        return
    name = given.node.value
    around = [each for each in enclosing(given.module, given.node) if isinstance(each, cst.FunctionDef)]
    for block in (*(each.body for each in around[-1:]), given.module.tree):
        found = [node for node in statements(block) if isinstance(node, cst.Assign) and _sets(node, name)]
        yield from ((Place(given.module, node).span, f"`{name}` is set to {value} here") for node in found)
        if found:
            return


def _sets(node: cst.Assign, name: str) -> bool:
    return any(isinstance(each.target, cst.Name) and each.target.value == name for each in node.targets)


def nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield a node and all below it."""
    yield node
    for child in children(node):
        yield from nodes(child)


def statements(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the small statements below a node, without those of inner functions and classes."""
    for child in children(node):
        if isinstance(child, cst.BaseSmallStatement):
            yield child
        elif not isinstance(child, (cst.BaseExpression, cst.FunctionDef, cst.ClassDef)):
            yield from statements(child)


def _shortened(code: str) -> str:
    code = " ".join(code.split())
    return code if len(code) <= _CODE else f"{code[: _CODE - 1]}…"
