"""SF903: a second backward through one graph, freed by the first one."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.event_order import ends_early, is_passed, receiver_code
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.freed_graphs import (
    DETACHED,
    added_losses,
    detached_state,
    detached_use,
    moved_forward,
    use_of_state,
)
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Diagnostic, Evidence, ExpectedError, Fix, Role
from shapefix.domains.operations import InPlaceWrite
from shapefix.domains.reused_graphs import GraphReused
from shapefix.interpreter.evaluator import Loop

_ERROR = ExpectedError("RuntimeError", "Trying to backward through the graph a second time")


@rule("SF903", on=GraphReused, reads=(InPlaceWrite,))
def second_backward(event: GraphReused, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if event.loop is not None and _runs_once(event, event.loop):
        return
    if event.loop is None and not is_passed(event.place.module, event.place.node, event.first.place.node):
        return
    module = event.place.module
    named = abbreviate(receiver_code(event.place)) or abbreviate(event.place.code)
    made = event.made.place
    operation, line = abbreviate(made.code), rewrites.line_of(made, module)
    fix = _fix(event, context)
    if event.loop is None:
        how, cure = "again", "add the losses, and call `backward` once"
        if fix is not None and fix.edits[0].content == DETACHED:
            cure = fix.message
        moment = "the first backward frees the graph"
    elif event.is_carried:
        how, cure = "of the previous pass again", "detach what a pass keeps for the next one"
        if event.kept is not None:
            keeper, where = abbreviate(event.kept.code), rewrites.line_of(event.kept, module)
            cure = f"detach what `{keeper}` ({where}) keeps for the next pass"
        moment = "each pass frees the graph, and the next one uses it again"
    else:
        how, cure = "again in each pass", "compute it in the loop"
        moment = "the first pass frees the graph, and the second one uses it again"
    yield rule.diagnostic(
        event.place.span,
        f"backward of `{named}` uses the graph of `{operation}` ({line}) {how}; {cure}",
        error=_ERROR,
        evidence=[
            *call_trace(event),
            Evidence(made.span, "the graph of this operation is used twice", Role.CAUSE, "used twice"),
            Evidence(event.first.place.span, moment),
            *_uses(event, fix),
        ],
        fixes=[fix] if fix is not None else [],
    )


def _uses(event: GraphReused, fix: Fix | None) -> Iterator[Evidence]:
    """Yield the places of the cure: uses of a state, and of the value of the first of two backwards."""
    if event.kept is not None:
        yield Evidence(event.kept.span, f"`{abbreviate(event.kept.code)}` keeps the graph for the next pass")
    state = use_of_state(event) if event.is_carried else None
    if state is not None:
        (name,) = event.names
        yield Evidence(
            event.place.module.span(state), f"`{name}` comes from the previous pass, with its graph"
        )
    elif event.loop is None and fix is not None and event.names:
        for edit in fix.edits:
            if edit.content == DETACHED:
                (name,) = event.names
                yield Evidence(edit.span, f"`{name}` is to be detached here")


def _fix(event: GraphReused, context: CheckContext) -> Fix | None:
    if event.is_carried:
        return detached_state(event)
    if event.loop is not None:
        return moved_forward(event)
    return added_losses(event) or detached_use(event, context)


def _runs_once(event: GraphReused, loop: Loop) -> bool:
    """Whether a loop may get there once: `range(1)`, a `break` at the end, or a condition around backward."""
    for node in reversed(enclosing(event.place.module, event.place.node)):
        if isinstance(node, (cst.If, cst.Try)):
            return True
        if node is loop.node or isinstance(node, cst.FunctionDef):
            break
    call = loop.node.iter if isinstance(loop.node, cst.For) else None
    is_range = isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value == "range"
    if is_range and isinstance(call, cst.Call) and len(call.args) == 1:
        given = call.args[0].value
        return isinstance(given, cst.Integer) and given.evaluated_value < 2
    return ends_early(loop)
