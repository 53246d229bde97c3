"""Methods named without a call, the cause of other findings."""

from __future__ import annotations

from shapefix.checks.context import CheckContext
from shapefix.domains.uncalled_methods import MethodNotCalled
from shapefix.interpreter.modules import Module


def uncalled(context: CheckContext, module: Module, method: str) -> bool:
    """Check for a statement in a file with the name of a method, but no call."""
    return any(
        isinstance(event, MethodNotCalled) and event.method == method and event.place.module is module
        for _, event in context.numbered.get(MethodNotCalled, ())
    )
