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
    target = event.operands[-1].tensor
    scores = event.operands[0].tensor if len(event.operands) > 1 else None
    outside, classes = context.text(error.index), context.text(error.size)
    is_drawn = target.extremes is not None and target.extremes.drawn
    holds = "may contain" if is_drawn else "contains"
    ids = "`labels`" if scores is None else named(event, 1)
    if at_least(error.index, 0) is False:
        limit = "class ids start at 0"
    elif scores is None:
        limit = f"the model has num_labels={classes}: only classes 0 to {context.text(error.size - 1)}"
    else:
        limit = f"{named(event, 0)} scores only classes 0 to {context.text(error.size - 1)}"
    yield rule.diagnostic(
        event.place.span,
        f"{ids} {holds} class {outside}, but {limit}",
        error=ExpectedError("IndexError", f"Target {outside} is out of bounds"),
        evidence=[
            *call_trace(event),
            *made_at(event.layer),
            *(shape_trace(scores, context)[-3:] if scores is not None else ()),
            *shape_trace(target, context)[-3:],
            Evidence(event.place.span, f"class {outside} of {classes} is looked up"),
        ],
        condition=Condition(f"a class id is {outside}") if is_drawn else None,
    )
