"""Functions called by a loader or a trainer: the collate function, and the dataset's `__getitem__`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.syntax import enclosing, enclosing_function
from shapefix.diagnostics import Diagnostic, Evidence, Role, Span
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import BoundMethod, FunctionValue, Value


def with_loader_calls(event: Event, found: Diagnostic, context: CheckContext) -> Diagnostic:
    """Name the function called for each batch or sample on the way to a finding.

    Its own call is in the library: the code has only the creation of the loader.
    """
    named = {}
    for place, inner in pairwise((*event.calls, event.place)):
        if place.node in context.collators and (how := _how(context.collators[place.node], inner)):
            named[place.span] = how
    if not named:
        return found
    steps = tuple(
        replace(step, label=f"{named[step.span]} of {step.label}") if _is_call(step, named) else step
        for step in found.evidence
    )
    return replace(found, evidence=steps)


def _is_call(step: Evidence, named: Mapping[Span, str]) -> bool:
    return step.role is Role.CALL and step.span in named


def _how(collator: Value | None, inner: Place) -> str:
    """Return the function around a place, if the loader calls it: `collate called for each batch`."""
    function = enclosing_function(inner)
    if function is None:
        return ""
    name = _qualified(inner, function)
    if function.name.value == "__getitem__":
        return f"{name} called for each sample"
    called = collator.function if isinstance(collator, BoundMethod) else collator
    if isinstance(called, FunctionValue):
        return f"{name} called for each batch" if called.node is function else ""
    return f"{name} called for each batch" if function.name.value == "__call__" else ""


def _qualified(inner: Place, function: cst.FunctionDef) -> str:
    """Return the name of a function; for one of a class `Collator.__call__`."""
    name, blocks = function.name.value, (cst.ClassDef, cst.FunctionDef)
    around = reversed(enclosing(inner.module, function)[:-1])
    owner = next((node for node in around if isinstance(node, blocks)), None)
    return f"{owner.name.value}.{name}" if isinstance(owner, cst.ClassDef) else name
