"""SF409: a `compute_loss` without `num_items_in_batch`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.diagnostics import Applicability, Diagnostic, Edit, ExpectedError, Fix
from shapefix.domains.versions import MethodOverridden


@rule("SF409", on=MethodOverridden)
def compute_loss_signature(
    event: MethodOverridden, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    module, method = event.place.module, event.method
    name, trainer = method.name.value, event.owner.rpartition(".")[2]
    yield rule.diagnostic(
        module.span(method.name),
        f"`{name}` has no parameter `{event.missing}`, which `{trainer}` passes "
        f"since transformers {event.version}",
        error=ExpectedError("TypeError", f"got an unexpected keyword argument '{event.missing}'"),
        fixes=_fix(event),
        habit=f"`{name}` without `{event.missing}`",
    )


def _fix(event: MethodOverridden) -> Iterator[Fix]:
    params, module = event.method.params, event.place.module
    last: cst.Param = params.kwonly_params[-1] if params.kwonly_params else params.params[-1]
    annotation = last.annotation.annotation if last.annotation is not None else last.name
    tail = last.default or annotation
    if getattr(tail, "lpar", ()):
        # The span is inside of the parentheses.
        return
    code = rewrites.following(module, last.name, event.method.name, f"{event.missing}=None")
    edit = Edit(module.span(tail).end(), code)
    yield Fix(Applicability.SAFE, f"accept `{event.missing}`", (edit,))
