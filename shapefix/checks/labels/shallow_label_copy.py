"""SF201: labels sharing their rows with the input ids."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.event_order import already_reported
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.liveness import is_read_as_input
from shapefix.checks.support.ragged_columns import failing_labels
from shapefix.checks.support.shared_labels import SharedLabels, masked, shared_labels
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Import
from shapefix.domains.batches import Collated
from shapefix.domains.masks import MaskWritten
from shapefix.interpreter.containers import ListValue
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place


@rule("SF201", on=MaskWritten)
def shallow_label_copy(event: MaskWritten, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    pair = _shared_rows(event)
    if pair is None or already_reported(event, context, _copied_node):
        return
    (labels, inputs), place = pair.names, pair.bound.place
    if _is_ragged(place, context):
        # SF301 reports the crash on this line; the copy matters once the collator pads the labels.
        return
    yield rule.diagnostic(
        place.span,
        f"`{labels}` shares rows with `{inputs}` ({_how(pair.bound.value)}); "
        f"writing -100 at {rewrites.line_of(event.place, place.module)} also changes `{inputs}`",
        evidence=[
            *call_trace(event),
            Evidence(place.span, f"`{labels}` and `{inputs}` have the same rows from here"),
            masked(event, inputs),
        ],
        fixes=_deep_copy(place, pair.bound.value),
    )


def _is_ragged(place: Place, context: CheckContext) -> bool:
    """Whether SF301 reports labels on the same line."""
    return any(
        failing.module is place.module and failing.span.row == place.span.row
        for event in context.events
        if isinstance(event, Collated)
        for failing in failing_labels(event)
    )


def _shared_rows(event: MaskWritten) -> SharedLabels | None:
    """Return labels and inputs sharing the list, or the row, of a -100 write."""
    written = event.written
    if not isinstance(written, ListValue):
        return None
    inputs = next((holder for holder in event.holders if is_read_as_input(holder)), None)
    if inputs is None:
        return None
    is_row = inputs.value is not written
    return shared_labels([h for h in event.holders if (h.value is not written) == is_row], inputs)


def _copied_node(event: Event) -> cst.CSTNode | None:
    """Return the code copying rows before -100 is written into them."""
    pair = _shared_rows(event) if isinstance(event, MaskWritten) else None
    return None if pair is None else pair.bound.place.node


def _how(value: cst.BaseExpression) -> str:
    """Return the kind of copy in words."""
    if isinstance(value, cst.Call):
        if isinstance(value.func, cst.Attribute) and value.func.attr.value == "copy":
            return "`.copy()` copies only the outer list"
        if isinstance(value.func, cst.Name) and value.func.value == "list":
            return "`list(...)` copies only the outer list"
    if isinstance(value, cst.Subscript) and isinstance(value.slice[0].slice, cst.Slice):
        return "`[:]` copies only the outer list"
    return "the same list, not a copy"


def _deep_copy(place: Place, value: cst.BaseExpression) -> list[Fix]:
    copied = value
    if isinstance(value, cst.Call) and _how(value).startswith("`"):
        copied = value.args[0].value if value.args else value.func
        copied = copied.value if isinstance(copied, cst.Attribute) and not value.args else copied
    elif isinstance(value, cst.Subscript) and _how(value).startswith("`"):
        copied = value.value
    edit = Edit(place.module.span(value), f"copy.deepcopy({place.module.code(copied)})")
    return [Fix(Applicability.SAFE, "copy the rows as well", (edit,), (Import("copy"),))]
