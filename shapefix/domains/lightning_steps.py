"""Faults in methods of LightningModules, for a Trainer to reject or to skip."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import libcst as cst

from shapefix.interpreter.events import Event
from shapefix.interpreter.values import ClassValue


class StepFault(Enum):
    """Kind of a fault in a method of a LightningModule."""

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
