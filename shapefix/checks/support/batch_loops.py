"""Try statements in loops over batches."""

from __future__ import annotations

import libcst as cst

from shapefix.checks.support.wording import abbreviate
from shapefix.domains.try_blocks import StepKind, TryBlock
from shapefix.interpreter.modules import Place

_LONGEST = 60


_TRAINING = frozenset({StepKind.LOSS, StepKind.BACKWARD})


def is_in_batches(event: TryBlock) -> bool:
    """Whether a try statement is in a loop over batches, or steps, of a training or an evaluation.

    Code with a new model tries a configuration, and so does a loop over literal settings.
    """
    kinds = {act.kind for act in event.acts}
    if event.tries_settings:
        return False
    trains = not kinds.isdisjoint(_TRAINING)
    if event.loops:
        return trains or (event.loops[-1].over_batches and StepKind.MODEL in kinds)
    return event.repeated and StepKind.BACKWARD in kinds


def call_text(place: Place) -> str:
    """Return the code of a call, with long arguments omitted: `train_model(…)`."""
    code, node = place.code, place.node
    if len(code) <= _LONGEST or not isinstance(node, cst.Call):
        return abbreviate(code)
    return abbreviate(f"{place.module.code(node.func)}(…)")
