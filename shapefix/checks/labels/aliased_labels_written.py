"""SF202: -100 written into labels in the memory of the input ids."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext, lineage
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.liveness import is_argument, is_read_as_input
from shapefix.checks.support.shared_labels import SharedLabels, masked, shared_labels
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix
from shapefix.domains.masks import MaskWritten
from shapefix.domains.tokens import is_same
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue, tensor_row
from shapefix.interpreter.values import Unknown, Value
from shapefix.tensors.ops import Op

_WHOLE = frozenset(
    {
        Op.VIEW,
        Op.RESHAPE,
        Op.FLATTEN,
        Op.UNFLATTEN,
        Op.TRANSPOSE,
        Op.PERMUTE,
        Op.MOVEDIM,
        Op.SQUEEZE,
        Op.UNSQUEEZE,
        Op.DETACH,
    }
)
_PARTS = frozenset({Op.SLICE, Op.INDEX, Op.NARROW, Op.SELECT, Op.EXPAND, Op.UNFOLD, Op.SPLIT})


@rule("SF202", on=MaskWritten)
def aliased_labels_written(event: MaskWritten, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    pair = _shared_memory(event)
    if pair is None:
        return
    (labels, inputs), place = pair.names, pair.bound.place
    same = _tensor(pair.labels.value) is _tensor(pair.inputs.value)
    how = "is the same tensor as" if same else "shares memory with"
    yield rule.diagnostic(
        event.place.span,
        f"`{labels}` {how} `{inputs}` ({rewrites.line_of(place, event.place.module)}); "
        f"writing -100 also changes `{inputs}`",
        evidence=[
            *call_trace(event),
            Evidence(place.span, f"`{labels}` shares the memory of `{inputs}` from here"),
            masked(event, inputs),
        ],
        fixes=_clone(place, pair.bound.value) if place.module is event.place.module else (),
    )


def _shared_memory(event: MaskWritten) -> SharedLabels | None:
    """Return labels and inputs sharing the memory of a -100 write."""
    written = event.written
    if not isinstance(written, TensorValue):
        return None
    for inputs in event.holders:
        tensor = _tensor(inputs.value)
        if tensor is None:
            continue
        if _is_all_of(written, tensor) and is_read_as_input(inputs):
            return shared_labels([h for h in event.holders if _is_all_of(written, _tensor(h.value))], inputs)
        if _is_one_before(tensor, written) and (is_read_as_input(inputs) or is_argument(inputs)):
            return shared_labels([h for h in event.holders if _tensor(h.value) is written], inputs)
    return None


def _tensor(value: Value) -> TensorValue | None:
    value = value.tensor if isinstance(value, Unknown) and value.tensor is not None else value
    return value if isinstance(value, TensorValue) else None


def _is_all_of(one: TensorValue, other: TensorValue | None) -> bool:
    """Whether two tensors of one storage contain the same elements, in any shape."""
    if other is None:
        return False
    if one is other or (_is_whole(one) and _is_whole(other)):
        return True
    first, second = tensor_row(one), tensor_row(other)
    if first is None or second is None or not is_same(first, second) or first.start != second.start:
        return False
    return one.layout is not None and one.layout == other.layout


def _is_whole(tensor: TensorValue) -> bool:
    """Whether a view covers all elements of its base."""
    for step in lineage(tensor):
        if step.op in _PARTS:
            return False
        if step.op not in _WHOLE:
            break
    return True


def _is_one_before(inputs: TensorValue, labels: TensorValue) -> bool:
    """Whether labels are the inputs of a language model shifted by one, as slices of one tensor."""
    one, other = tensor_row(inputs), tensor_row(labels)
    if one is None or other is None or not is_same(one, other) or one.short is None:
        return False
    return (other.start - one.start).value == 1


def _clone(place: Place, value: cst.BaseExpression) -> list[Fix]:
    span = place.module.span(value)
    end = span.end()
    return [Fix(Applicability.SAFE, "clone the labels", (Edit(end, ".clone()"),))]
