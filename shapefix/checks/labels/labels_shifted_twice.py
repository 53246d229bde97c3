"""SF204: labels shifted by the script and again by the model."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.bound_names import name_of
from shapefix.checks.support.event_order import already_reported
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Diagnostic, Evidence
from shapefix.domains.batches import SHIFTED, Collated, ModelCalled
from shapefix.domains.tokens import is_same, row_of
from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import Value


@rule("SF204", on=(ModelCalled, Collated))
def labels_shifted_twice(
    event: ModelCalled | Collated, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    cut = _cut(event)
    if cut is None or already_reported(event, context, _cut_node):
        return
    yield rule.diagnostic(
        cut.span,
        f"`{name_of(cut)}` is already shifted by one, and {_model(event, cut)} shifts labels again; "
        "the model learns to predict two tokens ahead",
        evidence=[
            *call_trace(event),
            Evidence(cut.span, "shifted here"),
            Evidence(event.place.span, "shifted again here"),
        ],
    )


def _model(event: ModelCalled | Collated, seen_from: Place) -> str:
    node, line = event.place.node, rewrites.line_of(event.place, seen_from.module)
    if isinstance(event, Collated):
        return f"the model of `{event.consumer.rpartition('.')[2]}` ({line})"
    code = event.place.module.code(node.func if isinstance(node, cst.Call) else node)
    return f"`{abbreviate(code)}` ({line})"


def _cut(event: ModelCalled | Collated) -> Place | None:
    """Return the place of shifting labels by one against the inputs; None without one."""
    one, other = (row_of(value) for value in _inputs_and_labels(event))
    if event.loss != SHIFTED or one is None or other is None or not is_same(one, other):
        return None
    return other.cut if (other.start - one.start).value == 1 else None


def _inputs_and_labels(event: ModelCalled | Collated) -> tuple[Value | None, Value | None]:
    if isinstance(event, ModelCalled):
        return event.keywords.get("input_ids") or event.first, event.keywords.get("labels")
    fields = event.batch.fields if isinstance(event.batch, DictValue) else {}
    return fields.get("input_ids"), fields.get("labels")


def _cut_node(event: Event) -> cst.CSTNode | None:
    """Return the label-shifting code."""
    cut = _cut(event) if isinstance(event, (ModelCalled, Collated)) else None
    return None if cut is None else cut.node
