"""Exponentials, and their clamping bounds."""

from __future__ import annotations

from dataclasses import field

from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import Value
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class ClampedExp(Event):
    """Clamping of an exponential, computed at the place exponential, to bound."""

    exponential: Place
    bound: float


@dataclass(eq=False, slots=True)
class Exponentials:
    """The exponentials among the numbers of a run."""

    computed_at: dict[int, tuple[Value, Place]] = field(default_factory=dict)
    """Numbers by their ids, each with its place of computation."""
