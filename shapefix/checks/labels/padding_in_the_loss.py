"""SF203: pad token ids in labels, included in the loss."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext, lineage
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import padding_code, rewrites
from shapefix.checks.support.bound_names import name_of, named, value_at
from shapefix.checks.support.event_order import already_reported
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.loss_calls import is_by_class
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix
from shapefix.domains.batches import ALIGNED, SHIFTED, Collated, ModelCalled
from shapefix.domains.losses import LossComputed
from shapefix.domains.tokens import Tokenized, Tokens, TokensCompared, is_same, row_of, tokens_of
from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.events import Event, OperationCalled
from shapefix.interpreter.modules import Module, Place
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, LibraryObject, Value
from shapefix.tensors.ops import Op

Counted = ModelCalled | Collated | TokensCompared
_PADDED = ("longest", "max_length")
_ALL_ELEMENTS = frozenset(
    {
        Op.VIEW,
        Op.RESHAPE,
        Op.FLATTEN,
        Op.TRANSPOSE,
        Op.PERMUTE,
        Op.UNSQUEEZE,
        Op.SQUEEZE,
        Op.SLICE,
        Op.CONTIGUOUS,
        Op.CLONE,
        Op.TO,
        Op.TO_DTYPE,
        Op.DETACH,
    }
)
"""Operations that keep the elements, or a slice of them: with the padding at the end."""
_PAD_SEQUENCE = "torch.nn.utils.rnn.pad_sequence"
_MASKED = "put -100 where the attention mask is 0"


@rule("SF203", on=(ModelCalled, Collated, TokensCompared))
def padding_in_the_loss(event: Counted, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    tokens, place = _padded(event), _set_at(event)
    if tokens is None or place is None or already_reported(event, context, _set_node):
        return
    made = _tokenized(tokens, context)
    line = rewrites.line_of(tokens.place, place.module)
    name, source = _name(place), "input_ids" if _is_copy(event) else name_of(tokens.place)
    if source == name and isinstance(tokens.place.node, cst.Call):
        source = f"{abbreviate(tokens.place.module.code(tokens.place.node.func))}(…)"
    kept = f"the pad token ids of `{source}`" if source != name else "pad token ids"
    yield rule.diagnostic(
        place.span,
        f"`{name}` keeps {kept} ({_padding(made)}, {line}); the loss includes padding",
        evidence=[
            *call_trace(event),
            Evidence(tokens.place.span, "padded here"),
            Evidence(place.span, "labels set here"),
            Evidence(event.place.span, "the loss ignores only -100"),
        ],
        fixes=_mask(place, made) or [Fix(Applicability.DISPLAY, _MASKED, ())],
    )


@rule("SF203", on=LossComputed, reads=(OperationCalled,))
def padded_rows_in_the_loss(event: LossComputed, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    """Report class ids padded by `pad_sequence` in a loss without `ignore_index`."""
    targets, scores = event.given.get("target"), event.given.get("input")
    if not is_by_class(event.function) or not isinstance(targets, TensorValue) or targets.storage.is_written:
        return
    if not isinstance(scores, TensorValue) or not _ignores_nothing(event):
        return
    padded = _padded_by(targets)
    call = None if padded is None else _pad_sequence_at(padded, context)
    if padded is None or call is None or not isinstance(padded.node, cst.Call):
        return
    value = call.keywords.get(
        "padding_value", call.positional[2] if len(call.positional) > 2 else Constant(0)
    )
    if not isinstance(value, Constant) or not isinstance(value.value, (int, float)) or value.value == -100:
        return
    given = rewrites.argument(padded.node, 2, "padding_value")
    number = "0" if given is None else padded.module.code(given.value)
    made = event.layer.place if isinstance(event.layer, LibraryObject) else event.place
    line = rewrites.line_of(padded, event.place.module)
    yield rule.diagnostic(
        event.place.span,
        f"the targets are padded with {number} ({line}), but the loss ignores only -100; it includes padding",
        evidence=[
            *call_trace(event),
            Evidence(padded.span, f"rows of different lengths are padded with {number}"),
            *([Evidence(made.span, "the loss has no `ignore_index`")] if made is not None else []),
            Evidence(event.place.span, "padding counts as a class"),
        ],
        fixes=_ignoring(made, event, number if padded.module is event.place.module else str(value.value)),
    )


def _ignores_nothing(event: LossComputed) -> bool:
    """Whether a loss is the mean or the sum over all targets other than -100."""
    ignored, weight = event.given.get("ignore_index"), event.given.get("weight")
    reduction = event.given.get("reduction")
    if any(name in event.given for name in ("size_average", "reduce") if not _is_absent(event.given[name])):
        return False
    is_default = ignored is None or (isinstance(ignored, Constant) and ignored.value == -100)
    is_whole = reduction is None or (isinstance(reduction, Constant) and reduction.value in ("mean", "sum"))
    return is_default and is_whole and (weight is None or _is_absent(weight))


def _is_absent(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


def _padded_by(targets: TensorValue) -> Place | None:
    """Return the place of the padding of the targets' rows, all elements of them or a slice."""
    step = targets.origin
    while step is not None and step.op in _ALL_ELEMENTS:
        step = step.source or step.before
    return step.place if step is not None and step.op is Op.PAD_SEQUENCE else None


def _pad_sequence_at(place: Place, context: CheckContext) -> OperationCalled | None:
    """Return the call of `pad_sequence` at a place; a collator pads labels with a value of its own."""
    for event in context.events:
        if isinstance(event, OperationCalled) and event.place.node is place.node:
            return event if event.function == _PAD_SEQUENCE else None
    return None


def _ignoring(made: Place | None, event: LossComputed, number: str) -> Iterator[Fix]:
    message = f"let the loss ignore it: `ignore_index={number}`; for a class of this number, pad with -100"
    node = None if made is None else made.node
    if made is None or not isinstance(node, cst.Call) or any(each.star for each in node.args):
        yield Fix(Applicability.DISPLAY, message, ())
    elif rewrites.argument(node, len(node.args), "ignore_index") is None:
        yield Fix(
            Applicability.UNSAFE, message, (rewrites.appended(made.module, node, f"ignore_index={number}"),)
        )


def _labels(event: Counted) -> Value | None:
    if isinstance(event, TokensCompared):
        return event.targets
    if isinstance(event, ModelCalled):
        return event.keywords.get("labels")
    return event.batch.fields.get("labels") if isinstance(event.batch, DictValue) else None


def _padded(event: Counted) -> Tokens | None:
    """Return the tokenizer call padding the labels; None unless it is certain."""
    row = row_of(_labels(event)) if _counts(event) else None
    sources = tokens_of(row)
    if row is None or row.mask is not None or not all(source.padding in _PADDED for source in sources):
        return None
    return sources[0] if sources else None


def _counts(event: Counted) -> bool:
    """Whether the loss compares the labels with scores of the model for these texts.

    A causal model predicts its own inputs; one with a decoder, or a masked one, predicts other ids.
    """
    if isinstance(event, TokensCompared):
        return event.from_inputs
    return event.loss == ALIGNED or (event.loss == SHIFTED and _is_copy(event))


def _is_copy(event: Counted) -> bool:
    """Whether labels are known to be the input ids."""
    if isinstance(event, TokensCompared):
        return True
    if isinstance(event, ModelCalled):
        inputs = event.keywords.get("input_ids") or event.first
    else:
        inputs = event.batch.fields.get("input_ids") if isinstance(event.batch, DictValue) else None
    return is_same(row_of(inputs), row_of(_labels(event)))


def _set_at(event: Counted) -> Place | None:
    """Return the place of setting the labels: a batch item, a variable or an argument."""
    if isinstance(event, TokensCompared):
        return _targets_set_at(event)
    batches = event.unpacked if isinstance(event, ModelCalled) else (event.batch,)
    for batch in batches:
        if isinstance(batch, DictValue) and "labels" in batch.written and "labels" in batch.fields:
            return batch.written["labels"]
    labels = _labels(event)
    if isinstance(labels, TensorValue) and labels.origin is not None and labels.origin.op is Op.CLONE:
        return labels.origin.place
    node = event.place.node
    for given in node.args if isinstance(node, cst.Call) else ():
        if given.keyword is not None and given.keyword.value == "labels":
            return Place(event.place.module, given)
    return None


def _targets_set_at(event: TokensCompared) -> Place | None:
    """Return the slice or copy creating the targets of a loss, or else the argument."""
    row = row_of(event.targets)
    if row is not None and row.cut is not None:
        return row.cut
    for step in lineage(event.targets):
        if step.op is Op.CLONE:
            return step.place
    node = event.place.node
    given = rewrites.argument(node, 1, "target") if isinstance(node, cst.Call) else None
    return Place(event.place.module, given) if given is not None else None


def _set_node(event: Event) -> cst.CSTNode | None:
    """Return the code setting labels from padded ids."""
    if not isinstance(event, (ModelCalled, Collated, TokensCompared)) or _padded(event) is None:
        return None
    place = _set_at(event)
    return None if place is None else place.node


def _tokenized(tokens: Tokens, context: CheckContext) -> Tokenized | None:
    for event in context.events:
        if isinstance(event, Tokenized) and event.place.node is tokens.place.node:
            return event
    return None


def _padding(made: Tokenized | None) -> str:
    """Return the padding argument as code."""
    given = made.arguments.get("padding") if made is not None else None
    return f"padding={given.value!r}" if isinstance(given, Constant) else "padding"


def _name(place: Place) -> str:
    if isinstance(place.node, cst.Arg):
        is_named = place.node.keyword is not None and place.node.keyword.value == "labels"
        return "labels" if is_named else abbreviate(place.module.code(place.node.value))
    if isinstance(place.node, cst.SimpleString):
        return str(place.node.evaluated_value)
    around = enclosing(place.module, place.node)
    is_target = any(isinstance(node, cst.AssignTarget) for node in around)
    return (named(place.node) if is_target else "") or name_of(place)


def _mask(place: Place, made: Tokenized | None) -> list[Fix]:
    """Put -100 at each 0 of the attention mask; no fix if the mask is not in scope."""
    value = value_at(place)
    rows = _rows(made)
    if value is None or rows is None:
        return []
    ids = _copied(value)
    mask = _beside(place, ids)
    if mask is None:
        return []
    code = place.module.code(ids)
    if isinstance(rows, TensorValue):
        masked = f"{code}.masked_fill({mask} == 0, -100)"
    elif isinstance(rows.element, ListValue):
        row = "[token if kept else -100 for token, kept in zip(ids, mask)]"
        masked = f"[{row} for ids, mask in zip({code}, {mask})]"
    else:
        masked = f"[token if kept else -100 for token, kept in zip({code}, {mask})]"
    return [Fix(Applicability.UNSAFE, _MASKED, (Edit(place.module.span(value), masked),))]


def _rows(made: Tokenized | None) -> TensorValue | ListValue | None:
    result = made.result if made is not None else None
    rows = result.fields.get("input_ids") if isinstance(result, DictValue) else result
    return rows if isinstance(rows, (TensorValue, ListValue)) else None


def _copied(value: cst.BaseExpression) -> cst.BaseExpression:
    """Return the source of a copy: `x` of `x.clone()`, `x.copy()`, `list(x)` and `x[:]`."""
    if isinstance(value, cst.Call):
        if isinstance(value.func, cst.Attribute) and value.func.attr.value in ("clone", "copy", "detach"):
            return _copied(value.func.value) if not value.args else value
        name = value.func.attr.value if isinstance(value.func, cst.Attribute) else named(value.func)
        if name in ("list", "deepcopy") and len(value.args) == 1:
            return _copied(value.args[0].value)
    if isinstance(value, cst.Subscript) and len(value.slice) == 1:
        part = value.slice[0].slice
        if isinstance(part, cst.Slice) and part.lower is None and part.upper is None:
            return _copied(value.value)
    return value


def _beside(place: Place, ids: cst.BaseExpression) -> str | None:
    """Return the code of the attention mask of input ids."""
    module: Module = place.module
    if named(ids) != "input_ids":
        return None
    if isinstance(ids, cst.Subscript):
        index = ids.slice[0].slice
        if (
            len(ids.slice) != 1
            or not isinstance(index, cst.Index)
            or not isinstance(index.value, cst.SimpleString)
        ):
            return None
        return f'{module.code(ids.value)}["attention_mask"]'
    if isinstance(ids, cst.Attribute):
        return f"{module.code(ids.value)}.attention_mask"
    return "attention_mask" if padding_code.is_bound(module, place.node, "attention_mask") else None
