"""SF204: labels that are shifted by hand, and by the model once more."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.bound_names import name_of
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Diagnostic, Evidence
from shapefix.domains.batches import SHIFTED, Collated, ModelCalled
from shapefix.domains.tokens import is_same, row_of
from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import Value


@rule("SF204", on=(ModelCalled, Collated))
def labels_shifted_twice(
    event: ModelCalled | Collated, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    cut = _cut(event)
    if cut is None or _is_told(event, cut, context):
        return
    yield rule.diagnostic(
        cut.span,
        f"`{name_of(cut)}` is shifted by one, and {_model(event, cut)} shifts its labels itself: "
        "each position is trained on the token after the next",
        evidence=[
            *call_trace(event),
            Evidence(cut.span, "shifted here"),
            Evidence(event.place.span, "and in here once more"),
        ],
    )


def _model(event: ModelCalled | Collated, seen_from: Place) -> str:
    node, line = event.place.node, rewrites.line_of(event.place, seen_from.module)
    if isinstance(event, Collated):
        return f"the model of `{event.consumer.rpartition('.')[2]}` ({line})"
    code = event.place.module.code(node.func if isinstance(node, cst.Call) else node)
    return f"`{abbreviate(code)}` ({line})"


def _cut(event: ModelCalled | Collated) -> Place | None:
    """Where labels were made to begin one position further on than the inputs; None where they were not."""
    one, other = (row_of(value) for value in _inputs_and_labels(event))
    if event.loss != SHIFTED or one is None or other is None or not is_same(one, other):
        return None
    return other.cut if (other.start - one.start).value == 1 else None


def _inputs_and_labels(event: ModelCalled | Collated) -> tuple[Value | None, Value | None]:
    if isinstance(event, ModelCalled):
        return event.keywords.get("input_ids") or event.first, event.keywords.get("labels")
    fields = event.batch.fields if isinstance(event.batch, DictValue) else {}
    return fields.get("input_ids"), fields.get("labels")


def _is_told(event: ModelCalled | Collated, cut: Place, context: CheckContext) -> bool:
    """Whether an earlier event tells of labels that were shifted at the same place."""
    for earlier in context.events:
        if earlier is event:
            return False
        if isinstance(earlier, (ModelCalled, Collated)):
            place = _cut(earlier)
            if place is not None and place.node is cut.node:
                return True
    return False
