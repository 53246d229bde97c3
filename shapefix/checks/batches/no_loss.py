"""SF411: a `Trainer` with a model returning no loss: a model without a head, or batches without labels."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, ExpectedError, Fix, Role
from shapefix.domains.batches import Collated
from shapefix.interpreter.containers import DictValue, elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import BoundMethod, Constant, FunctionValue, InstanceValue, Value

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


_MISSING = ExpectedError("ValueError", "The model did not return a loss from the inputs")
_NOT_SCALAR = ExpectedError("RuntimeError", "grad can be implicitly created only for scalar outputs")


@rule("SF411", on=Collated)
def no_loss(event: Collated, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    forward, batch = event.forward, event.batch
    if event.returned is not None:
        yield from _without_loss(event, event.returned, rule)
        return
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
        if isinstance(event.collator, (FunctionValue, BoundMethod, InstanceValue)):
            advice = "return `labels` from the data collator, too"
    else:
        return
    yield rule.diagnostic(
        event.place.span,
        reason,
        evidence=[*call_trace(event), Evidence(event.place.span, reason)],
        error=_MISSING,
        fixes=[Fix(Applicability.DISPLAY, advice, ())],
    )


def _without_loss(event: Collated, returned: Value, rule: Rule) -> Iterator[Diagnostic]:
    """Report a model of the project with a dictionary without a loss, or scores, as its result."""
    first = elements(returned)
    scores = first[0] if first else returned
    error, what = _MISSING, ""
    advice = 'compute the loss in `forward`, and return it first, or as "loss"'
    if isinstance(returned, DictValue):
        names = [f"`{key}`" for key in returned.fields]
        if returned.closed and "loss" not in returned.fields and names and not returned.absent:
            what = f"the model returns a dictionary of {', '.join(names)}, and no loss"
    elif isinstance(scores, TensorValue) and scores.layout is not None and scores.certain:
        # The trainer takes the first item of a tensor, too.
        rank = scores.layout.rank - (scores is returned)
        if rank > 0:
            error, tensor = _NOT_SCALAR, f"a tensor of {scores.layout.rank} dimensions"
            what = f"the model returns {tensor}, and no loss"
            if any(map(_is_number, (first or [])[1:])):
                what = f"the model returns {tensor} before the loss; the trainer takes the first item"
                advice = "return the loss first"
    if not what:
        return
    yield rule.diagnostic(
        event.place.span,
        what,
        evidence=[
            *call_trace(event),
            *(Evidence(each.span, "the model returns it here", Role.CAUSE) for each in event.returns),
            Evidence(event.place.span, "the trainer takes the loss of the model"),
        ],
        error=error,
        fixes=[Fix(Applicability.DISPLAY, advice, ())],
    )


def _is_number(value: Value) -> bool:
    return isinstance(value, TensorValue) and value.layout is not None and value.layout.rank == 0


def _is_given(value: Value | None) -> bool:
    return value is not None and not (isinstance(value, Constant) and value.value is None)
