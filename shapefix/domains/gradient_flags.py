"""Flags for gradients, unread by torch: a misspelled name, or a module instead of its parameters."""

from __future__ import annotations

from shapefix.interpreter.events import Event
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class UnreadFlag(Event):
    """Assignment of an attribute for gradients, without an effect; the place is its target.

    name is the attribute; of_module is whether its owner is a module. freezes is whether the value is False.
    """

    name: str
    of_module: bool
    freezes: bool
