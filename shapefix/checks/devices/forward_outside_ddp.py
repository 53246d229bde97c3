"""SF613: `model.module(x)` in a training loop: gradients are not averaged over the processes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.distributed_models import calls_in_training, wrapped_by
from shapefix.checks.support.evidence import call_trace
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Role
from shapefix.domains.modes import ForwardCalled
from shapefix.domains.training import Backward
from shapefix.interpreter.events import OperationCalled

_BY_HAND = re.compile(r"no_sync|all_reduce|average_gradients|reduce_gradients|require_backward_grad_sync")
"""Text of code that averages gradients itself, or asks for none."""


@rule("SF613", on=OperationCalled, reads=(ForwardCalled, Backward))
def forward_outside_ddp(event: OperationCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    model = wrapped_by(event)
    if model is None:
        return
    calls = list(calls_in_training(model, context))
    if any(_wrapper(call) is None for call, _ in calls):
        # One call of the wrapper prepares the gradients of all.
        return
    for call, backward in calls:
        wrapper = _wrapper(call)
        if wrapper is None or call.module is not model or _BY_HAND.search(call.place.module.text):
            continue
        module = call.place.module
        code = module.code(wrapper)
        attribute = call.place.node.func if isinstance(call.place.node, cst.Call) else wrapper
        edit = Edit(module.span(attribute), code)
        yield rule.diagnostic(
            call.place.span,
            f"`{code}.module` is called, not `{code}`: the processes do not average their gradients",
            evidence=[
                *call_trace(call),
                Evidence(event.place.span, "averages gradients after its own forward only", Role.CAUSE),
                Evidence(call.place.span, "calls the model inside of it"),
                Evidence(backward.place.span, "gradients of this process alone"),
            ],
            fixes=[Fix(Applicability.UNSAFE, f"call `{code}`", (edit,))],
        )


def _wrapper(call: ForwardCalled) -> cst.BaseExpression | None:
    """Return `model` of a call `model.module(x)`."""
    node = call.place.node
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    return node.func.value if node.func.attr.value == "module" else None
