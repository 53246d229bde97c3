"""SF201 and SF202: labels that share their memory with the input ids, and are written into."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from shapefix.checks.collation.ragged_labels import labels_fail
from shapefix.checks.context import CheckContext, lineage
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.bound_names import value_at
from shapefix.checks.support.evidence import calls
from shapefix.checks.support.liveness import INPUTS, Bound, is_argument, is_read_as_input, last_bound
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Import, Severity, Span
from shapefix.interpreter.batch_events import Collated, Mapped
from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.holders import Holder, MaskWritten
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue, tensor_row
from shapefix.interpreter.token_rows import is_same
from shapefix.interpreter.values import Unknown, Value

_WHOLE = frozenset(
    {
        "viewed",
        "reshaped",
        "flattened",
        "unflattened",
        "transposed",
        "permuted",
        "moved",
        "squeezed",
        "unsqueezed",
        "detached",
    }
)
_PARTS = frozenset({"sliced", "indexed", "narrowed", "selected", "expanded", "unfolded", "split"})


@dataclass(frozen=True)
class _Pair:
    """What -100 is written into, how it came by its memory, and the input ids that have the same."""

    labels: Holder
    bound: Bound
    inputs: Holder

    @property
    def names(self) -> tuple[str, str]:
        return self.labels.key or self.labels.name, self.inputs.key or self.inputs.name


@rule(
    "SF201",
    "shallow-label-copy",
    Severity.WARNING,
    "labels share their rows with input_ids, and are written into, or fail to be collated",
    Applicability.SAFE,
    on=(MaskWritten, Collated),
)
def shallow_label_copy(event: MaskWritten | Collated, run: CheckContext, this: Rule) -> Iterator[Diagnostic]:
    if isinstance(event, Collated):
        yield from _beside_ragged_labels(event, run, this)
        return
    pair = _shared_rows(event)
    if pair is None or _is_told(event, pair, run):
        return
    (labels, inputs), place = pair.names, pair.bound.place
    yield this.diagnostic(
        place.span,
        f"`{labels}` shares its rows with `{inputs}` ({_how(pair.bound.value)}): "
        f"the write in {rewrites.line_of(event.place, place.module)} changes `{inputs}` too",
        evidence=[*calls(event), Evidence(event.place.span, "-100 is written here")],
        fixes=_deep_copy(place, pair.bound.value),
    )


def _beside_ragged_labels(event: Collated, run: CheckContext, this: Rule) -> Iterator[Diagnostic]:
    """Where SF301 says what crashes, say that the copy is not to blame."""
    sample = event.sample
    place = sample.written.get("labels") if isinstance(sample, DictValue) else None
    value = value_at(place) if place is not None else None
    if place is None or value is None or not labels_fail(event):
        return
    if not any(isinstance(other, Mapped) and _shares_rows(other.returned, place) for other in run.events):
        return
    yield this.diagnostic(
        place.span,
        f"`labels` shares its rows with `{INPUTS}` ({_how(value)}), but copying does not repair rows of "
        "different lengths: see SF301",
        evidence=[*calls(event), Evidence(event.place.span, "what crashes is the collator, here")],
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


@rule(
    "SF202",
    "aliased-labels-written",
    Severity.ERROR,
    "labels are the same memory as input_ids, and -100 is written into them",
    Applicability.SAFE,
    on=MaskWritten,
)
def aliased_labels_written(event: MaskWritten, run: CheckContext, this: Rule) -> Iterator[Diagnostic]:
    pair = _shared_memory(event)
    if pair is None:
        return
    (labels, inputs), place = pair.names, pair.bound.place
    same = _tensor(pair.labels.value) is _tensor(pair.inputs.value)
    how = "is the same tensor as" if same else "shares memory with"
    yield this.diagnostic(
        event.place.span,
        f"`{labels}` {how} `{inputs}` ({rewrites.line_of(place, event.place.module)}): "
        f"this write changes `{inputs}` too",
        evidence=[*calls(event), Evidence(place.span, f"`{labels}` gets the memory of `{inputs}` here")],
        fixes=_clone(place, pair.bound.value) if place.module is event.place.module else (),
    )


def _shared_rows(event: MaskWritten) -> _Pair | None:
    """The lists that both hold the row, or are the list, that -100 is written into."""
    written = event.written
    if not isinstance(written, ListValue):
        return None
    inputs = next((holder for holder in event.holders if is_read_as_input(holder)), None)
    if inputs is None:
        return None
    is_row = inputs.value is not written
    return _pair([h for h in event.holders if (h.value is not written) == is_row], inputs)


def _shared_memory(event: MaskWritten) -> _Pair | None:
    """The tensors that have memory in common, into which -100 is written."""
    written = event.written
    if not isinstance(written, TensorValue):
        return None
    for inputs in event.holders:
        tensor = _tensor(inputs.value)
        if tensor is None:
            continue
        if _is_all_of(written, tensor) and is_read_as_input(inputs):
            return _pair([h for h in event.holders if _is_all_of(written, _tensor(h.value))], inputs)
        if _is_one_before(tensor, written) and (is_read_as_input(inputs) or is_argument(inputs)):
            return _pair([h for h in event.holders if _tensor(h.value) is written], inputs)
    return None


def _pair(holders: list[Holder], inputs: Holder) -> _Pair | None:
    """The outermost of the holders, which is where the second name was given, and the inputs."""
    for labels in reversed(holders):
        bound = last_bound(labels)
        is_other = (labels.name, labels.key, labels.body) != (inputs.name, inputs.key, inputs.body)
        if is_other and bound is not None:
            return _Pair(labels, bound, inputs)
    return None


def _is_told(event: MaskWritten, pair: _Pair, run: CheckContext) -> bool:
    """Whether an earlier write tells of the same copy."""
    for earlier in run.events:
        if earlier is event:
            return False
        other = _shared_rows(earlier) if isinstance(earlier, MaskWritten) else None
        if other is not None and other.bound.place.node is pair.bound.place.node:
            return True
    return False


def _tensor(value: Value) -> TensorValue | None:
    value = value.tensor if isinstance(value, Unknown) and value.tensor is not None else value
    return value if isinstance(value, TensorValue) else None


def _is_all_of(one: TensorValue, other: TensorValue | None) -> bool:
    """Whether two tensors of one storage have the same elements, however they are seen."""
    if other is None:
        return False
    if one is other or (_is_whole(one) and _is_whole(other)):
        return True
    first, second = tensor_row(one), tensor_row(other)
    if first is None or second is None or not is_same(first, second) or first.start != second.start:
        return False
    return one.layout is not None and one.layout == other.layout


def _is_whole(tensor: TensorValue) -> bool:
    """Whether a view shows all of the memory."""
    for step in lineage(tensor):
        if step.verb in _PARTS:
            return False
        if step.verb not in _WHOLE:
            break
    return True


def _is_one_before(inputs: TensorValue, labels: TensorValue) -> bool:
    """Whether two slices of one tensor are those of a language model: the labels one position further on."""
    one, other = tensor_row(inputs), tensor_row(labels)
    if one is None or other is None or not is_same(one, other) or one.short is None:
        return False
    return (other.start - one.start).value == 1


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


def _clone(place: Place, value: cst.BaseExpression) -> list[Fix]:
    span = place.module.span(value)
    end = Span(span.path, span.end_row, span.end_column, span.end_row, span.end_column)
    return [Fix(Applicability.SAFE, "give the labels memory of their own", (Edit(end, ".clone()"),))]
