"""Conditions of findings dependent on command-line defaults."""

from __future__ import annotations

from dataclasses import replace

from shapefix.checks.support.conditions import combined
from shapefix.diagnostics import Condition, Diagnostic, Evidence
from shapefix.interpreter.events import Event, OpRejected
from shapefix.interpreter.modules import Place
from shapefix.tensors.options import options_of


def under_defaults(event: Event, found: Diagnostic) -> Diagnostic:
    """Add a condition: the required options have their defaults."""
    needed = options_of(event.error) if isinstance(event, OpRejected) else ()
    if not needed:
        return found
    conditions = [
        Condition(f"`{option.flag}` is {option.default}, its default", constant=True) for option in needed
    ]
    declared = tuple(
        Evidence(option.place.span, f"`{option.flag}` defaults to {option.default}")
        for option in needed
        if isinstance(option.place, Place)
    )
    if found.condition is not None:
        conditions.append(replace(found.condition, predicate=None))
    return replace(found, condition=combined("and", conditions), evidence=(*declared, *found.evidence))
