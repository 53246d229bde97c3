"""Windows of a series, shorter at its end."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.domains.windows import ShortWindow, Windows
from shapefix.interpreter.calls import Call
from shapefix.interpreter.classes import member
from shapefix.interpreter.containers import DictValue, elements
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.interpreter.values import Constant, FunctionValue, InstanceValue, LibraryObject, Value
from shapefix.library.data.samples import length_of
from shapefix.library.numpy_arrays import as_array
from shapefix.tensors.bounds import at_least

_FARTHEST = 40
_SHORTEST = 3
"""Shortest windows with two shorter ones at the end: a single one may have the last batch for itself."""


def note_short_windows(call: Call, loader: LibraryObject | InstanceValue, dataset: Value, one: Value) -> None:
    """Report windows of a sample, shorter for the last samples of the dataset."""
    taken = call.ev.state[Windows].taken
    nodes = {step.place.node for part in _parts(one) for step in _steps_of(part)} if taken else set()
    windows = [window for window in taken if window.place.node in nodes]
    taken.clear()
    drops = loader.fields.get("drop_last")
    if not windows or not isinstance(drops, Constant) or drops.value is not False:
        return
    samples = length_of(call, dataset)
    counted = member(dataset.cls, "__len__") if isinstance(dataset, InstanceValue) else None
    where = Place(counted.module, counted.node) if isinstance(counted, FunctionValue) else None
    made = loader.place if isinstance(loader, LibraryObject) else None
    for window in windows:
        if samples is None or not at_least(window.width, _SHORTEST):
            continue
        if at_least(samples + window.width - window.length, 2):
            call.ev.emit(ShortWindow(made or call.place, call.ev.calls, window, samples, where))


def _parts(one: Value) -> Iterator[Value]:
    """Iterate over a sample, or its parts."""
    yield one
    yield from one.fields.values() if isinstance(one, DictValue) else elements(one) or ()


def _steps_of(value: Value) -> Iterator[LayoutStep]:
    """Iterate over the operations of a tensor or an array."""
    tensor = value if isinstance(value, TensorValue) else as_array(value)
    step = tensor.origin if tensor is not None else None
    for _ in range(_FARTHEST):
        if step is None:
            return
        yield step
        step = step.source
