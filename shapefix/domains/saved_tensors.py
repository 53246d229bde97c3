"""Tensors saved by autograd for the backward pass, and writes into them."""

from __future__ import annotations

from dataclasses import field

import libcst as cst

from shapefix.interpreter.evaluator import Evaluator, Loop
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import Storage, TensorValue
from shapefix.interpreter.values import Value
from shapefix.light_dataclasses import dataclass


class SavedTensor(Value):
    """A tensor saved for its gradient by the operation at a place, possibly its own result.

    earlier is what another operation saved of the same memory before.
    """

    __slots__ = ("earlier", "place", "result", "tensor")

    def __init__(self, place: Place, tensor: TensorValue, result: TensorValue) -> None:
        self.place = place
        self.tensor = tensor
        self.result = result
        self.earlier: SavedTensor | None = None

    @property
    def is_result(self) -> bool:
        """Whether the operation saved its result; otherwise it saved an operand."""
        return self.tensor is self.result


@dataclass(frozen=True, slots=True)
class MadeAt:
    """Moment of an operation: its place, the step, and all open loops.

    once is whether it runs once in a pass of these loops.
    """

    place: Place
    step: int
    loops: tuple[Loop, ...]
    once: bool


@dataclass(eq=False, slots=True)
class SavedTensors:
    """Saved tensors at this moment of a run."""

    by_storage: dict[Storage, Value] = field(default_factory=dict)
    """By the memory that they share with their views. Written to the journal."""
    results: dict[TensorValue, MadeAt] = field(default_factory=dict)
    """Results of operations that saved tensors: their graph can be used once."""


@dataclass(frozen=True, eq=False, slots=True)
class SavedTensorWritten(Event):
    """A write into the memory of a saved tensor, before its gradient is computed.

    subject is the expression of the tensor; layer is the module that writes, None for code of the user.
    undecided is whether the write is in a branch that may never be taken.
    """

    subject: cst.CSTNode | None
    saved: SavedTensor
    layer: Value | None
    undecided: bool


def note_used_once(ev: Evaluator, place: Place, result: TensorValue) -> None:
    """Record the result of an operation with saved tensors, freed by its backward."""
    loops = tuple(loop for frame in ev.frames for loop in frame.loops)
    once = not any(frame.scope.comprehension for frame in ev.frames)
    ev.state[SavedTensors].results.setdefault(result, MadeAt(place, ev.steps, loops, once))


def note_saved(ev: Evaluator, tensor: TensorValue, saved: SavedTensor) -> None:
    """Record that an operation saved a tensor."""
    note_used_once(ev, saved.place, saved.result)
    before = ev.state[SavedTensors].by_storage.get(tensor.storage)
    saved.earlier = before if isinstance(before, SavedTensor) and before is not saved else None
    ev.journal.write(ev.state[SavedTensors].by_storage, tensor.storage, saved)


def note_write_into_saved(
    ev: Evaluator, place: Place, tensor: TensorValue, subject: cst.CSTNode | None, layer: Value | None
) -> None:
    """Report a write into a saved tensor."""
    saved = ev.state[SavedTensors].by_storage.get(tensor.storage)
    if isinstance(saved, SavedTensor) and tensor.certain and not _is_unwatched(tensor, saved, subject):
        ev.emit(SavedTensorWritten(place, ev.calls, subject, saved, layer, bool(ev.frame.undecided)))


def _is_unwatched(tensor: TensorValue, saved: SavedTensor, subject: cst.CSTNode | None) -> bool:
    """Check whether autograd may not notice a write: into `x.data`, or into a detached view."""
    is_data = isinstance(subject, cst.Attribute) and subject.attr.value == "data"
    return is_data or (tensor.graph is False and saved.tensor.graph is not False)
