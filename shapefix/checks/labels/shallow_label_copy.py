"""SF201: labels that share their rows with the input ids."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.bound_names import value_at
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.liveness import INPUTS, is_read_as_input
from shapefix.checks.support.ragged_columns import labels_fail
from shapefix.checks.support.shared_labels import SharedLabels, shared_labels
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Import
from shapefix.domains.batches import Collated, Mapped
from shapefix.domains.masks import MaskWritten
from shapefix.interpreter.containers import DictValue, ListValue
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
    if pair is None or _is_told(event, pair, context):
        return
    (labels, inputs), place = pair.names, pair.bound.place
    yield rule.diagnostic(
        place.span,
        f"`{labels}` shares its rows with `{inputs}` ({_how(pair.bound.value)}): "
        f"the write in {rewrites.line_of(event.place, place.module)} changes `{inputs}` too",
        evidence=[*call_trace(event), Evidence(event.place.span, "-100 is written here")],
        fixes=_deep_copy(place, pair.bound.value),
    )


def _beside_ragged_labels(event: Collated, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    """Where SF301 says what crashes, say that the copy is not to blame."""
    sample = event.sample
    place = sample.written.get("labels") if isinstance(sample, DictValue) else None
    value = value_at(place) if place is not None else None
    if place is None or value is None or not labels_fail(event):
        return
    if not any(isinstance(other, Mapped) and _shares_rows(other.returned, place) for other in context.events):
        return
    yield rule.diagnostic(
        place.span,
        f"`labels` shares its rows with `{INPUTS}` ({_how(value)}), but copying does not repair rows of "
        "different lengths: see SF301",
        evidence=[*call_trace(event), Evidence(event.place.span, "what crashes is the collator, here")],
        fixes=_deep_copy(place, value),
    )


def _shares_rows(returned: Value, place: Place) -> bool:
    """Whether a map function returned labels, set at place, that hold the very rows of the input ids."""
    if not isinstance(returned, DictValue) or "labels" not in returned.written:
        return False
    labels, ids = returned.fields.get("labels"), returned.fields.get(INPUTS)
    if returned.written["labels"].node is not place.node:
        return False
    if not isinstance(labels, ListValue) or not isinstance(ids, ListValue):
        return False
    return isinstance(labels.element, ListValue) and labels.element is ids.element


def _shared_rows(event: MaskWritten) -> SharedLabels | None:
    """The lists that both hold the row, or are the list, that -100 is written into."""
    written = event.written
    if not isinstance(written, ListValue):
        return None
    inputs = next((holder for holder in event.holders if is_read_as_input(holder)), None)
    if inputs is None:
        return None
    is_row = inputs.value is not written
    return shared_labels([h for h in event.holders if (h.value is not written) == is_row], inputs)


def _is_told(event: MaskWritten, pair: SharedLabels, context: CheckContext) -> bool:
    """Whether an earlier write tells of the same copy."""
    for earlier in context.events:
        if earlier is event:
            return False
        other = _shared_rows(earlier) if isinstance(earlier, MaskWritten) else None
        if other is not None and other.bound.place.node is pair.bound.place.node:
            return True
    return False


def _how(value: cst.BaseExpression) -> str:
    """What kind of a copy it is, in the user's words."""
    if isinstance(value, cst.Call):
        if isinstance(value.func, cst.Attribute) and value.func.attr.value == "copy":
            return "`.copy()` copies the outer list only"
        if isinstance(value.func, cst.Name) and value.func.value == "list":
            return "`list(...)` copies the outer list only"
    if isinstance(value, cst.Subscript) and isinstance(value.slice[0].slice, cst.Slice):
        return "`[:]` copies the outer list only"
    return "a second name for one list"


def _deep_copy(place: Place, value: cst.BaseExpression) -> list[Fix]:
    copied = value
    if isinstance(value, cst.Call) and _how(value).startswith("`"):
        copied = value.args[0].value if value.args else value.func
        copied = copied.value if isinstance(copied, cst.Attribute) and not value.args else copied
    elif isinstance(value, cst.Subscript) and _how(value).startswith("`"):
        copied = value.value
    edit = Edit(place.module.span(value), f"copy.deepcopy({place.module.code(copied)})")
    return [Fix(Applicability.SAFE, "copy the rows, too", (edit,), (Import("copy"),))]
