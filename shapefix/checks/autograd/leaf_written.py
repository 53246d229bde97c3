"""SF902: an in-place write into a leaf of the autograd graph."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.gradient_tests import is_selected_by_gradient
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, ExpectedError, Fix, Import
from shapefix.domains.gradients import LeafWritten

_ERROR = ExpectedError(
    "RuntimeError", "a leaf Variable that requires grad is being used in an in-place operation"
)


@rule("SF902", on=LeafWritten)
def leaf_written(event: LeafWritten, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if is_selected_by_gradient(event.place):
        return
    module = event.place.module
    write = abbreviate(event.place.code)
    name = "the tensor" if event.subject is None else f"`{abbreviate(module.code(event.subject))}`"
    yield rule.diagnostic(
        event.place.span,
        f"`{write}` writes in place into {name}, which requires a gradient; use `torch.no_grad()`",
        error=_ERROR,
        evidence=[
            *call_trace(event),
            Evidence(event.place.span, f"{name} is a leaf of the autograd graph, and gradients are recorded"),
        ],
        fixes=_fixes(event),
    )


def _fixes(event: LeafWritten) -> Iterator[Fix]:
    title = "write without recording gradients: `with torch.no_grad():`"
    edit = None if event.is_differentiated else rewrites.inside_block(event.place, "with torch.no_grad():")
    if edit is not None:
        yield Fix(Applicability.SAFE, title, (edit,), (Import("torch"),))
    elif event.is_differentiated:
        yield Fix(Applicability.DISPLAY, "compute a new tensor instead of writing in place", ())
    else:
        yield Fix(Applicability.DISPLAY, title, ())
