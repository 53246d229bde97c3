"""SF201: labels sharing their rows with the input ids."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.bound_names import value_at
from shapefix.checks.support.event_order import already_reported
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.liveness import INPUTS, is_read_as_input
from shapefix.checks.support.ragged_columns import labels_fail
from shapefix.checks.support.shared_labels import SharedLabels, shared_labels
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Import
from shapefix.domains.batches import Collated, Mapped
from shapefix.domains.masks import MaskWritten
from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import Value


@rule("SF201", on=(MaskWritten, Collated))
def shallow_label_copy(
    event: MaskWritten | Collated, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    if isinstance(event, Collated):
        yield from _beside_ragged_labels(event, context, rule)
        return
    pair = _shared_rows(event)
    if pair is None or already_reported(event, context, _copied_node):
        return
    (labels, inputs), place = pair.names, pair.bound.place
    yield rule.diagnostic(
        place.span,
        f"`{labels}` shares rows with `{inputs}` ({_how(pair.bound.value)}); "
        f"writing -100 at {rewrites.line_of(event.place, place.module)} also changes `{inputs}`",
        evidence=[*call_trace(event), Evidence(event.place.span, "-100 written here")],
        fixes=_deep_copy(place, pair.bound.value),
    )


def _beside_ragged_labels(event: Collated, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    """Report a shallow copy next to an SF301 crash with another cause."""
    sample = event.sample
    place = sample.written.get("labels") if isinstance(sample, DictValue) else None
    value = value_at(place) if place is not None else None
    if place is None or value is None or not labels_fail(event):
        return
    if not any(isinstance(other, Mapped) and _shares_rows(other.returned, place) for other in context.events):
        return
    yield rule.diagnostic(
        place.span,
        f"`labels` shares rows with `{INPUTS}` ({_how(value)}); a copy does not fix the different lengths "
        "(see SF301)",
        evidence=[*call_trace(event), Evidence(event.place.span, "the collator raises here")],
        fixes=_deep_copy(place, value),
    )


def _shares_rows(returned: Value, place: Place) -> bool:
    """Whether a map function returned labels, set at place, with the rows of the input ids."""
    if not isinstance(returned, DictValue) or "labels" not in returned.written:
        return False
    labels, ids = returned.fields.get("labels"), returned.fields.get(INPUTS)
    if returned.written["labels"].node is not place.node:
        return False
    if not isinstance(labels, ListValue) or not isinstance(ids, ListValue):
        return False
    return isinstance(labels.element, ListValue) and labels.element is ids.element


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
