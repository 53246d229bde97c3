"""SF905: a conversion to NumPy of a tensor with a gradient."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.gradient_tests import tests_gradient
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Role, Span
from shapefix.domains.gradients import NumpyOfGradient
from shapefix.interpreter.modules import Module

_ERROR = ExpectedError("RuntimeError", "Can't call numpy() on Tensor that requires grad")


@rule("SF905", on=NumpyOfGradient)
def numpy_of_gradient(event: NumpyOfGradient, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    module = event.place.module
    around = enclosing(module, event.place.node)
    if tests_gradient(event.place) or any(isinstance(node, (cst.Try, cst.TryStar)) for node in around):
        return
    code, subject = abbreviate(event.place.code), abbreviate(module.code(event.subject))
    origin = event.tensor.origin
    made = () if origin is None else (Evidence(origin.place.span, "computed here, with its graph"),)
    what = f"the tensors in `{subject}` require" if event.is_list else f"`{subject}` requires"
    yield rule.diagnostic(
        event.place.span,
        f"`{code}`: {what} a gradient, which NumPy cannot record; call `.detach()`",
        error=_ERROR,
        evidence=[
            *call_trace(event),
            *made,
            Evidence(event.place.span, f"{what} a gradient", Role.FAILURE),
        ],
        fixes=[_fix(event)],
    )


def _fix(event: NumpyOfGradient) -> Fix:
    module, subject = event.place.module, event.subject
    method = "detach().cpu()" if event.is_on_gpu else "detach()"
    if event.is_list:
        code = f"[each.{method} for each in {module.code(subject)}]"
        is_plain = isinstance(subject, (cst.Name, cst.Attribute))
        edit = Edit(module.span(subject), code) if is_plain else None
    else:
        edit = _detached(module, _before_move(subject), method)
    message = f"leave the graph: `.{method}`"
    if edit is None:
        return Fix(Applicability.DISPLAY, message, ())
    return Fix(Applicability.SAFE, message, (edit,))


def _detached(module: Module, tensor: cst.BaseExpression, method: str) -> Edit:
    """Return the edit to call a method of a tensor; existing parentheses around it are enough."""
    end = module.span(tensor).end()
    if tensor.rpar and module.text.split("\n")[end.row - 1][end.column - 1 : end.column] == ")":
        return Edit(Span(end.path, end.row, end.column + 1, end.row, end.column + 1), f".{method}")
    return rewrites.method_called(module, tensor, method)


def _before_move(subject: cst.BaseExpression) -> cst.BaseExpression:
    """Return `x` of `x.cpu()`, and any other expression itself."""
    if isinstance(subject, cst.Call) and isinstance(subject.func, cst.Attribute) and not subject.args:
        if subject.func.attr.value == "cpu":
            return subject.func.value
    return subject
