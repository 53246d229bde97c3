"""Methods in statements of their own, without parentheses: nothing is called."""

from __future__ import annotations

from shapefix.interpreter.events import Event
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class MethodNotCalled(Event):
    """Statement with nothing but the name of a method of torch: `optimizer.step`.

    method is its name without that of the owner; needs_arguments is whether the method of this object cannot
    be called without arguments.
    """

    method: str
    needs_arguments: bool
