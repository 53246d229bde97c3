"""SF907: an object of an autograd function is called."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Role
from shapefix.domains.autograd_functions import FunctionObjectCalled
from shapefix.interpreter.modules import Place

_LEGACY = ExpectedError(
    "RuntimeError", "Legacy autograd function with non-static forward method is deprecated"
)


@rule("SF907", on=FunctionObjectCalled)
def function_object_called(
    event: FunctionObjectCalled, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    name, node = event.function.name, event.function.node
    yield rule.diagnostic(
        event.place.span,
        f"an object of the autograd function `{name}` is called; write `{name}.apply(...)`",
        error=_LEGACY,
        evidence=[
            *call_trace(event),
            Evidence(
                Place(event.function.module, node.name).span,
                "derives from `torch.autograd.Function`",
                Role.CAUSE,
            ),
            Evidence(event.place.span, "torch calls the class only, by `apply`"),
        ],
        fixes=_fixes(event),
    )


def _fixes(event: FunctionObjectCalled) -> Iterator[Fix]:
    """Yield the fix to call `apply`: for static methods, and an object made without arguments in the call."""
    call, forward = event.place.node, event.forward.node
    made = call.func if isinstance(call, cst.Call) else None
    is_static = isinstance(forward, cst.FunctionDef) and any(
        isinstance(each.decorator, cst.Name) and each.decorator.value == "staticmethod"
        for each in forward.decorators
    )
    if is_static and isinstance(made, cst.Call) and not made.args:
        module = event.place.module
        edit = Edit(module.span(made), f"{module.code(made.func)}.apply")
        yield Fix(Applicability.SAFE, "call `apply` of the class", (edit,))
    else:
        advice = (
            "make `forward(ctx, ...)` and `backward(ctx, ...)` static methods, and call `apply` of the class"
        )
        yield Fix(Applicability.DISPLAY, advice, ())
