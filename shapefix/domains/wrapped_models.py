"""Models inside of DataParallel and DistributedDataParallel."""

from __future__ import annotations

from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class WrappedAttributeRead(Event):
    """Read of an attribute of a model through its wrapper; torch raises here.

    wrapper is the class of the wrapper, made at a place; model is the class of the model inside. undecided is
    whether the read is in a branch that may never be taken.
    """

    name: str
    wrapper: str
    made: Place | None
    model: str
    undecided: bool
