"""Windows of a series: slices of a tensor from the index of a sample on."""

from __future__ import annotations

from dataclasses import field

from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Integer, Slice, Value
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import SampleIndex


@dataclass(frozen=True, eq=False, slots=True)
class Window:
    """Slice `x[i : i + width]` at a place, for the index i of a sample and x of this length."""

    place: Place
    start: SampleIndex
    length: Size
    width: Size


@dataclass(eq=False, slots=True)
class Windows:
    """Windows taken so far, in the running code without conditions."""

    taken: list[Window] = field(default_factory=list)


@dataclass(frozen=True, eq=False, slots=True)
class ShortWindow(Event):
    """Default collation of windows of a series, shorter for the last samples.

    The place is that of the loader; counted is the `__len__` of its dataset, None if unknown.
    """

    window: Window
    samples: Size
    counted: Place | None


def note_window(ev: Evaluator, place: Place, tensor: TensorValue, index: Value) -> None:
    """Record a slice of the first dimension of a tensor from the index of a sample on."""
    if (
        not isinstance(index, Slice)
        or not isinstance(index.start, Integer)
        or any(f.tests for f in ev.frames)
    ):
        return
    start, length = index.start.size.only_symbol, tensor.known_size(0)
    if not isinstance(start, SampleIndex) or not isinstance(index.stop, Integer) or length is None:
        return
    width = index.stop.size - index.start.size
    if start not in width.symbols:
        ev.state[Windows].taken.append(Window(place, start, length, width))
