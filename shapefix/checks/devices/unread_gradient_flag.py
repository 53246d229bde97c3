"""SF619: a flag for gradients, unread by torch."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Fix
from shapefix.domains.gradient_flags import UnreadFlag


@rule("SF619", on=UnreadFlag)
def unread_gradient_flag(event: UnreadFlag, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    code = abbreviate(event.place.code)
    effect = "its weights keep their gradients" if event.freezes else "it changes nothing"
    reason = "a module has no such flag" if event.of_module else "torch reads `requires_grad`"
    yield rule.diagnostic(
        event.place.span,
        f"`{code}` is an attribute without a meaning: {reason}; {effect}",
        evidence=call_trace(event),
        fixes=_fix(event),
        habit="a gradient flag that torch does not read",
    )


def _fix(event: UnreadFlag) -> list[Fix]:
    node, module = event.place.node, event.place.module
    if not isinstance(node, cst.Attribute):
        return []
    if not event.of_module:
        edit = Edit(module.span(node.attr), "requires_grad")
        return [Fix(Applicability.UNSAFE, "write `requires_grad`", (edit,))]
    assign = next((each for each in enclosing(module, node) if isinstance(each, cst.Assign)), None)
    if assign is None or len(assign.targets) != 1:
        return []
    code = f"{module.code(node.value)}.requires_grad_({not event.freezes})"
    return [
        Fix(
            Applicability.UNSAFE,
            f"call `requires_grad_({not event.freezes})`",
            (Edit(module.span(assign), code),),
        )
    ]
