"""SF608: a constructor of a module without a call of `nn.Module.__init__`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, ExpectedError, Fix, Role
from shapefix.domains.registration import AssignedBeforeInit
from shapefix.interpreter.modules import Place

_CALL = "super().__init__()"


@rule("SF608", on=AssignedBeforeInit)
def uninitialized_module(
    event: AssignedBeforeInit, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    module, name = event.place.module, event.owner.cls.name
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` is set before `{_CALL}`, which `{name}.__init__` never calls",
        error=ExpectedError("AttributeError", "cannot assign module before Module.__init__() call"),
        evidence=[
            *call_trace(event),
            Evidence(module.span(event.constructor.name), f"`__init__` without `{_CALL}`", Role.CAUSE),
            Evidence(event.place.span, "a module registers its layers from its first line on", Role.FAILURE),
        ],
        fixes=[_fix(event)],
    )


def _fix(event: AssignedBeforeInit) -> Fix:
    """Return the fix with the call as the first statement of the constructor."""
    module, body = event.place.module, event.constructor.body
    statements = body.body if isinstance(body, cst.IndentedBlock) else ()
    first = next((each for each in statements if not _is_docstring(each)), None)
    edit = None if first is None else rewrites.before_statement(Place(module, first), _CALL)
    if edit is None:
        return Fix(Applicability.DISPLAY, f"begin `__init__` with `{_CALL}`", ())
    return Fix(Applicability.SAFE, f"begin `__init__` with `{_CALL}`", (edit,))


def _is_docstring(statement: cst.CSTNode) -> bool:
    parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    first = parts[0] if len(parts) == 1 else None
    return isinstance(first, cst.Expr) and isinstance(first.value, (cst.SimpleString, cst.ConcatenatedString))
