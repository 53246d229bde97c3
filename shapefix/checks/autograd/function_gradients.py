"""SF906: a backward of an autograd function with a wrong number of gradients."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Role
from shapefix.domains.autograd_functions import GradientsMiscounted


@rule("SF906", on=GradientsMiscounted)
def function_gradients(event: GradientsMiscounted, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    name, wanted, given = event.name, event.wanted, event.given
    gradients = "1 gradient" if given == 1 else f"{given} gradients"
    inputs = "1 input" if wanted == 1 else f"{wanted} inputs"
    if event.has_defaults:
        inputs = f"at {'least' if given < wanted else 'most'} {inputs}"
    expected = f"function {name}Backward returned an incorrect number of gradients"
    counts = "" if event.has_defaults else f" (expected {wanted}, got {given})"
    yield rule.diagnostic(
        event.place.span,
        f"the backward of `{name}` returns {gradients}, but its forward has {inputs}",
        error=ExpectedError("RuntimeError", expected + counts),
        evidence=[
            Evidence(event.forward.span, f"{inputs} besides `ctx`"),
            Evidence(event.place.span, f"{gradients}, `None` for an input included", Role.FAILURE),
        ],
        fixes=_fixes(event),
    )


def _fixes(event: GradientsMiscounted) -> Iterator[Fix]:
    if event.given > event.wanted:
        yield Fix(Applicability.DISPLAY, "return one gradient for each input", ())
        return
    message = "return `None` for the inputs without a gradient"
    yield rewrites.unsafe_or_advice(message, _filled_up(event))


def _filled_up(event: GradientsMiscounted) -> Edit | None:
    """Return the edit to add `None` for each missing gradient."""
    node, module = event.place.node, event.place.module
    value = node.value if isinstance(node, cst.Return) else None
    missing = ", None" * (event.wanted - event.given)
    if isinstance(value, cst.Tuple) and value.elements:
        return Edit(module.span(value.elements[-1].value).end(), missing)
    if value is None or isinstance(value, cst.Tuple) or value.lpar:
        return None
    return Edit(module.span(value).end(), missing)
