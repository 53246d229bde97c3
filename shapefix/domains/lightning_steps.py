"""Faults of LightningModules in `Trainer.fit`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import libcst as cst

from shapefix.interpreter.events import Event
from shapefix.interpreter.values import ClassValue

HOOKS = {
    f"{stage}_epoch_end": f"on_{name}_epoch_end"
    for stage, name in (("training", "train"), ("validation", "validation"), ("test", "test"))
}
"""Hooks that Lightning 2.0 rejects, with those of newer versions."""


class StepFault(Enum):
    """Fault of a method of a LightningModule."""

    HOOK = "hook"
    INDEX = "index"
    OPTIMIZERS = "optimizers"
    MANUAL = "manual"
    NOTHING = "nothing"
    KEYS = "keys"
    COLLECTED = "collected"


@dataclass(frozen=True, eq=False, slots=True)
class LightningStepFound(Event):
    """A method of a LightningModule with a fault; the place is the part of it to show."""

    fault: StepFault
    owner: ClassValue
    method: cst.FunctionDef
