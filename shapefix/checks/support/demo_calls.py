"""Fixes of functions called from a demo: shown, not applied, since the demo may be wrong."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath

import libcst as cst

from shapefix.checks.support.syntax import enclosing, enclosing_class, enclosing_line
from shapefix.diagnostics import Applicability, Diagnostic, Fix
from shapefix.interpreter.events import Event, OperationEvent
from shapefix.interpreter.modules import Place, dotted_name, nodes
from shapefix.interpreter.tensor_values import TensorValue

_DEMO_NAME = re.compile(r"(?:^|_)(?:test|tests|demo|demos|example|examples)(?:_|$)")


def only_shown(event: Event, found: Diagnostic) -> Diagnostic:
    """Turn unsafe fixes into display fixes if a demo made the rejected tensor."""
    if not found.fixes or not isinstance(event, OperationEvent) or not event.calls:
        return found
    demo = _demo(event.calls[0]) or _trial(event)
    if demo is None or not any(_made_in(operand.tensor, event.calls[0], demo) for operand in event.operands):
        return found
    return replace(found, fixes=tuple(_shown(fix, event.calls[0], demo) for fix in found.fixes))


def _demo(call: Place) -> cst.CSTNode | None:
    """Return `if __name__ == "__main__"` or a function `test` around a call, or the whole file of a test."""
    for node in enclosing(call.module, call.node):
        if isinstance(node, cst.FunctionDef) and _DEMO_NAME.search(node.name.value):
            return node
        if isinstance(node, cst.If) and any(dotted_name(part) == "__name__" for part in _compared(node.test)):
            return node
    return call.module.tree if _DEMO_NAME.search(PurePath(call.module.path).stem) else None


def _trial(event: OperationEvent) -> cst.CSTNode | None:
    """Return the line of a trial call with a tensor of its own, if the file creates another such model."""
    call, owner = event.calls[0], enclosing_class(event.place)
    around = _around(call)
    if owner is None or any(isinstance(node, (cst.FunctionDef, cst.ClassDef)) for node in around):
        return None
    created = (node for node in nodes(call.module.tree) if isinstance(node, cst.Call))
    if sum(dotted_name(node.func) == owner.name.value for node in created) < 2:
        return None
    return enclosing_line(call)


def _compared(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    if not isinstance(test, cst.Comparison):
        return []
    return [test.left, *(target.comparator for target in test.comparisons)]


def _made_in(tensor: TensorValue, call: Place, demo: cst.CSTNode) -> bool:
    """Whether the first step of a tensor is in the demo."""
    if tensor.origin is None:
        return False
    made = tensor.origin.first.place
    return made.module is call.module and demo in _around(made)


def _around(place: Place) -> list[cst.CSTNode]:
    return enclosing(place.module, place.node)


def _shown(fix: Fix, call: Place, demo: cst.CSTNode) -> Fix:
    span = call.module.span(demo)
    inside = all(
        edit.span.path == span.path and span.row <= edit.span.row <= span.end_row for edit in fix.edits
    )
    if inside or fix.applicability is not Applicability.UNSAFE:
        return fix
    return replace(fix, applicability=Applicability.DISPLAY)
