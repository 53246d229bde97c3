"""Reversed views: arrays with a negative stride, unlike all tensors."""

from __future__ import annotations

from shapefix.interpreter.events import Event
from shapefix.interpreter.facts import Fact
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import Value
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class Reversed(Fact):
    """Array with a negative stride since a place; base is the value in its order before.

    certain is False if it is reversed on some paths only.
    """

    place: Place
    base: Value
    certain: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class ReversedViewRefused(Event):
    """Reversed view refused by torch: a slice of a tensor, or an array on its way to one.

    function is the refusing one, a loader's class for samples. reversed_at is the slice, or the call of
    `np.flip`; certain as in `Reversed`.
    """

    function: str
    reversed_at: Place
    certain: bool = True
