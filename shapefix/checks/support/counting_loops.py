"""Loops over `enumerate(loader)` with the counter taken for the batch."""

from __future__ import annotations

import libcst as cst

from shapefix.checks.support.syntax import enclosing
from shapefix.diagnostics import Applicability, Edit, Fix, Span
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Module, Place, dotted_name, nodes
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CountingLoop:
    """Loop over `enumerate`: the span of its target, the name of its counter, and the fix to skip it."""

    target: Span
    counter: str
    fix: Fix


def counting_loop(event: Event) -> CountingLoop | None:
    """Find the loop over `enumerate` with its counter as an argument of the call, or of a call around it."""
    for place in (event.place, *reversed(event.calls)):
        found = _around(place)
        if found is not None:
            return found
    return None


def _around(place: Place) -> CountingLoop | None:
    if not isinstance(place.node, cst.Call):
        return None
    passed = {each.value.value for each in place.node.args if isinstance(each.value, cst.Name)}
    for loop in reversed(enclosing(place.module, place.node)):
        if not isinstance(loop, cst.For) or not isinstance(loop.iter, cst.Call):
            continue
        if dotted_name(loop.iter.func) != "enumerate":
            continue
        target = loop.target
        if isinstance(target, cst.Tuple) and len(target.elements) == 2:
            counter = target.elements[0].value
            if isinstance(counter, cst.Name) and counter.value in passed:
                return _loop(place.module, loop, counter.value)
        elif isinstance(target, cst.Name):
            counter_name = _unpacked_first(loop, target.value)
            if counter_name in passed:
                return _loop(place.module, loop, counter_name)
    return None


def _unpacked_first(loop: cst.For, name: str) -> str:
    """Return `x` of `x, y = batch` in the loop; empty if the batch is not unpacked like this."""
    for node in nodes(loop.body):
        if isinstance(node, cst.Assign) and isinstance(node.value, cst.Name) and node.value.value == name:
            target = node.targets[0].target
            first = target.elements[0].value if isinstance(target, cst.Tuple) and target.elements else None
            if isinstance(first, cst.Name):
                return first.value
    return ""


def _loop(module: Module, loop: cst.For, counter: str) -> CountingLoop:
    span, code = module.span(loop.target), module.code(loop.target)
    wanted = f"_, {code}"
    if isinstance(loop.target, cst.Tuple):
        wanted = f"_, {code}" if loop.target.lpar else f"_, ({code})"
    fix = Fix(Applicability.UNSAFE, f"skip the counter: `for {wanted} in …`", (Edit(span, wanted),))
    return CountingLoop(span, counter, fix)
