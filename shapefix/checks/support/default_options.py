"""Conditions of findings dependent on command-line defaults."""

from __future__ import annotations

from dataclasses import replace

from shapefix.checks.support.conditions import combined
from shapefix.diagnostics import Applicability, Condition, Diagnostic, Evidence, Fix
from shapefix.domains.batches import Collated
from shapefix.interpreter.events import Event, OpRejected
from shapefix.interpreter.modules import Place
from shapefix.tensors.options import options_of

_OF_DEVICES = frozenset({"SF602", "SF603", "SF616"})
"""Rules about devices."""


def under_defaults(event: Event, found: Diagnostic) -> Diagnostic:
    """Add a condition: the required options have their defaults."""
    needed = options_of(event.error) if isinstance(event, OpRejected) else ()
    flags = event.flags if isinstance(event, Collated) else ()
    if not needed and not flags:
        return found
    conditions = [
        Condition(f"`{option.flag}` is {option.default}, its default", constant=True) for option in needed
    ]
    if flags:
        named = " and ".join(f"`{flag.option}`" for flag in flags)
        conditions.append(Condition(f"{named} {'is' if len(flags) == 1 else 'are'} left out", constant=True))
        # With the flag, the code may be right as it is.
        found = replace(found, fixes=tuple(map(_unsafe, found.fixes)))
    declared = tuple(
        Evidence(option.place.span, f"`{option.flag}` defaults to {option.default}")
        for option in needed
        if isinstance(option.place, Place)
    )
    if found.condition is not None:
        conditions.append(replace(found.condition, predicate=None))
    return replace(found, condition=combined("and", conditions), evidence=(*declared, *found.evidence))


def without_options(found: Diagnostic) -> Diagnostic:
    """Add a condition: no option is given on the command line."""
    condition = Condition("the options of the command line have their defaults", constant=True)
    if found.condition is not None:
        combination = combined("and", [condition, replace(found.condition, predicate=None)])
        assert combination is not None
        condition = combination
    found = replace(found, condition=condition, fixes=tuple(map(_unsafe, found.fixes)))
    if found.code in _OF_DEVICES and not found.reservation:
        # An option such as `--cuda` moves everything: its author always gives it.
        found = replace(found, reservation="it is assumed that no option moves the model to a GPU")
    return found


def _unsafe(fix: Fix) -> Fix:
    return (
        replace(fix, applicability=Applicability.UNSAFE) if fix.applicability is Applicability.SAFE else fix
    )
