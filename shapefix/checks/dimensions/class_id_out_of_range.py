"""SF517: class ids out of range of the scores of a loss."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace, made_at, shape_trace
from shapefix.checks.support.loss_calls import is_by_class
from shapefix.checks.support.operands import is_unlikely, named
from shapefix.diagnostics import Condition, Diagnostic, Evidence, ExpectedError
from shapefix.interpreter.events import OpRejected
from shapefix.tensors.bounds import at_least
from shapefix.tensors.errors import IndexOutOfRange


@rule("SF517", on=OpRejected)
def class_id_out_of_range(event: OpRejected, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    error = event.error
    if not is_by_class(event.function) or not isinstance(error, IndexOutOfRange) or is_unlikely(event):
        return
    scores, target = event.operands[0].tensor, event.operands[1].tensor
    outside, classes = context.text(error.index), context.text(error.size)
    is_drawn = target.extremes is not None and target.extremes.drawn
    holds = "may contain" if is_drawn else "contains"
    ids = named(event, 1)
    is_negative = at_least(error.index, 0) is False
    limit = "class ids start at 0" if is_negative else f"{named(event, 0)} scores only classes 0 to "
    limit += "" if is_negative else context.text(error.size - 1)
    yield rule.diagnostic(
        event.place.span,
        f"{ids} {holds} class {outside}, but {limit}",
        error=ExpectedError("IndexError", f"Target {outside} is out of bounds"),
        evidence=[
            *call_trace(event),
            *made_at(event.layer),
            *shape_trace(scores, context)[-3:],
            *shape_trace(target, context)[-3:],
            Evidence(event.place.span, f"class {outside} of {classes} is looked up"),
        ],
        condition=Condition(f"a class id is {outside}") if is_drawn else None,
    )
