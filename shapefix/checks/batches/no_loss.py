"""SF411: a `Trainer` with a model returning no loss: a model without a head, or batches without labels."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, ExpectedError, Fix
from shapefix.domains.batches import Collated
from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.values import Constant, Value

LABELS = "labels"
_OTHERS = (
    "start_positions",
    "next_sentence_label",
    "mc_labels",
    "class_labels",
    "mask_labels",
    "return_loss",
    "sentence_order_label",
    "future_values",
)
"""Parameters of forward with a loss of their own."""


@rule("SF411", on=Collated)
def no_loss(event: Collated, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    forward, batch = event.forward, event.batch
    if forward is None or not isinstance(batch, DictValue) or not set(_OTHERS).isdisjoint(forward.named):
        return
    model, has_labels = forward.name.removesuffix(".forward"), _is_given(batch.fields.get(LABELS))
    if LABELS not in forward.named:
        if has_labels and forward.raises is not False:
            # The labels raise a TypeError first.
            return
        reason = f"`{model}` has no head: it returns hidden states, and no loss"
        advice = "use the model with a head for the task: `AutoModelForSequenceClassification` and others"
    elif batch.closed and not has_labels:
        names = ", ".join(f"`{key}`" for key in batch.fields if isinstance(key, str))
        reason = f"`{model}` gets no `labels`, and returns no loss; the batch has {names}"
        advice = "add a column `labels` to the dataset, or pass a collator to create it"
    else:
        return
    yield rule.diagnostic(
        event.place.span,
        reason,
        evidence=[*call_trace(event), Evidence(event.place.span, reason)],
        error=ExpectedError("ValueError", "The model did not return a loss from the inputs"),
        fixes=[Fix(Applicability.DISPLAY, advice, ())],
    )


def _is_given(value: Value | None) -> bool:
    return value is not None and not (isinstance(value, Constant) and value.value is None)
