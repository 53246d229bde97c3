"""Unknown datasets, batches and models of a training script."""

from __future__ import annotations

from enum import StrEnum

import libcst as cst

from shapefix.interpreter import hooks
from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import Constant, LibraryObject, Unknown, Value
from shapefix.light_dataclasses import dataclass


class LostKind(StrEnum):
    """Use of a value in a training script."""

    DATASET = "dataset"
    BATCH = "batch"
    MODEL = "model"


@dataclass(frozen=True, eq=False, slots=True)
class ValueLost(Event):
    """Use of an unknown dataset, batch or model by the script: its rules are silent.

    origin is the call that returned it, None if unknown. user is the code of its consumer: the class of a
    loader or a trainer, or the model that gets a batch.
    """

    kind: LostKind
    user: str
    origin: Place | None


def note_dataset(ev: Evaluator, place: Place, user: str, dataset: Value | None, sample: Value | None) -> None:
    """Report a dataset of unknown samples, at the creation of a loader or a trainer."""
    if isinstance(dataset, Constant) or not _is_lost(sample):
        return
    made = dataset.place if isinstance(dataset, LibraryObject) else None
    _note(ev, place, LostKind.DATASET, user, made or _origin(dataset) or _origin(sample))


def note_batch(ev: Evaluator, place: Place, given: tuple[Value, ...]) -> None:
    """Report a call of a model in a loop, but not in a forward, if each of its arguments is unknown."""
    inside = any(isinstance(node, cst.FunctionDef) and node.name.value == "forward" for node in ev.running)
    if given and not inside and any(frame.loops for frame in ev.frames) and all(map(_is_lost, given)):
        called = place.node.func if isinstance(place.node, cst.Call) else place.node
        _note(
            ev,
            place,
            LostKind.BATCH,
            place.module.code(called),
            next(filter(None, map(_origin, given)), None),
        )


@hooks.call_unknown
def note_model(ev: Evaluator, function: Value, node: cst.CSTNode) -> None:
    """Report a call of an unknown value in a loop if the code has read its parameters before."""
    is_model = isinstance(function, Unknown) and "parameters" in function.attributes
    if is_model and any(frame.loops for frame in ev.frames):
        _note(ev, ev.place(node), LostKind.MODEL, "", _origin(function))


def _note(ev: Evaluator, place: Place, kind: LostKind, user: str, origin: Place | None) -> None:
    # The arguments of a function without known callers are unknown by nature.
    if not ev.entry_point:
        ev.emit(ValueLost(place, ev.calls, kind, user, origin))


def _is_lost(value: Value | None) -> bool:
    """Check whether nothing is known of a sample or a batch, not even a column."""
    if isinstance(value, DictValue):
        return not value.fields and not value.closed
    return value is None or (isinstance(value, Unknown) and value.tensor is None)


def _origin(value: Value | None) -> Place | None:
    return value.origin if isinstance(value, Unknown) else None
