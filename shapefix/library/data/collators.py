"""Collate functions: torch's default, the collators of transformers, the user's own.

The facts about collators were executed with transformers 5.23 and 4.57: which columns it pads, what
becomes of the others, what it does to labels.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from shapefix.domains.batches import Collated
from shapefix.domains.raggedness import row_sizes, varying
from shapefix.domains.tokens import row_of
from shapefix.interpreter.calls import Arguments, Call, call_value
from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.iteration import iterate
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    NONE,
    BoundMethod,
    Constant,
    FunctionValue,
    InstanceValue,
    LibraryObject,
    Reference,
    Unknown,
    Value,
    is_text,
)
from shapefix.library.data.column_tensors import count, dtype_of, in_tensor, is_scalar, stacked
from shapefix.library.data.samples import known_apart
from shapefix.library.registry import declare, function, method
from shapefix.library.signatures import BoundArguments, arguments_under, bound
from shapefix.library.tensors import contiguous_result
from shapefix.library.transformers.pad_tokens import asks_for_pad_token, note_padding
from shapefix.library.transformers.padding import IDS, Padding, padded
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size

_TRANSFORMERS = "transformers"
DEFAULT = f"{_TRANSFORMERS}.default_data_collator"
DEFAULT_CLASS = f"{_TRANSFORMERS}.DefaultDataCollator"
WITH_PADDING = f"{_TRANSFORMERS}.DataCollatorWithPadding"
LANGUAGE_MODELING = f"{_TRANSFORMERS}.DataCollatorForLanguageModeling"
SEQ2SEQ = f"{_TRANSFORMERS}.DataCollatorForSeq2Seq"
TOKENS = f"{_TRANSFORMERS}.DataCollatorForTokenClassification"

_SETTINGS = "padding=True, max_length=None, pad_to_multiple_of=None"
SIGNATURES = {
    WITH_PADDING: f"tokenizer, {_SETTINGS}, return_tensors='pt'",
    # The third parameter depends on the version.
    LANGUAGE_MODELING: f"tokenizer, mlm=True, third=None, {_SETTINGS}, return_tensors='pt'",
    SEQ2SEQ: f"tokenizer, model=None, {_SETTINGS}, label_pad_token_id=-100, return_tensors='pt'",
    TOKENS: f"tokenizer, {_SETTINGS}, label_pad_token_id=-100, return_tensors='pt'",
    DEFAULT_CLASS: "return_tensors='pt'",
}
for _kind in SIGNATURES:
    declare(_kind, "builtins.object")


@function(*SIGNATURES, *(f"{_TRANSFORMERS}.data.{k.rpartition('.')[2]}" for k in SIGNATURES))
def make_collator(call: Call) -> Value:
    kind = f"{_TRANSFORMERS}.{call.name.rpartition('.')[2]}"
    settings = bound(SIGNATURES[kind], call.arguments)
    # A later assignment, `collator.mlm = False`, sets a field.
    return LibraryObject(kind, settings, call.place, dict(settings))


@method(WITH_PADDING, "__call__")
@method(LANGUAGE_MODELING, "__call__", "torch_call")
@method(SEQ2SEQ, "__call__")
@method(TOKENS, "__call__", "torch_call")
@method(DEFAULT_CLASS, "__call__")
@function(DEFAULT, f"{_TRANSFORMERS}.data.data_collator.default_data_collator")
def call_collator(call: Call) -> Value:
    """Call a collator from the user's own code."""
    given = arguments_under(call, f"{LANGUAGE_MODELING}.__call__")
    features = iterate(call.ev, given.value("features"), call.place.node)
    collator = call.receiver if call.receiver is not None else Reference(DEFAULT)
    features, sample = known_apart(call, features)
    batch = _by_library(call, collator, features)
    if not _gives_tensors(given.value("return_tensors"), allowed=(None, "pt")):
        batch = Unknown()
    call.ev.emit(Collated(call.place, call.ev.calls, "", sample, collator, None, batch))
    return batch


def _gives_tensors(asked: Value, allowed: tuple[object, ...] = ("pt",)) -> bool:
    return isinstance(asked, Constant) and asked.value in allowed


def is_callable(collator: Value | None) -> bool:
    """Check for a collate function with known behavior."""
    if isinstance(collator, Reference):
        return collator.name.endswith((".default_data_collator", ".default_collate"))
    return isinstance(collator, (FunctionValue, BoundMethod, InstanceValue, LibraryObject))


def collate_by(call: Call, collator: Value, features: ListValue) -> Value:
    """Collate samples with a function; Unknown if the result is not known or the call raises."""
    if isinstance(collator, (LibraryObject, Reference)) and _is_known(collator):
        return _by_library(call, collator, features)
    return call_value(call.ev, collator, Arguments([features]), call.place.node)


def _is_known(collator: LibraryObject | Reference) -> bool:
    if isinstance(collator, Reference):
        return collator.name.endswith(".default_data_collator")
    return collator.kind in SIGNATURES


def _by_library(call: Call, collator: Value, features: Value) -> Value:
    features, sample = known_apart(call, features)
    settings: dict[str, Value] = {}
    kind = DEFAULT_CLASS
    if isinstance(collator, LibraryObject):
        kind = collator.kind
        settings = {**bound(SIGNATURES[kind], Arguments()), **collator.arguments, **collator.fields}
        _ask_for_pad_token(call, collator, settings)
    if not isinstance(features, ListValue) or not isinstance(sample, DictValue):
        return Unknown()
    if not _gives_tensors(settings.get("return_tensors", Constant("pt"))):
        return Unknown()
    return _MAKERS[kind](call, BoundArguments(settings), features, sample) or Unknown()


def _plain_batch(
    call: Call, given: BoundArguments, features: ListValue, sample: DictValue
) -> DictValue | None:
    """Apply default_data_collator: rename `label` to `labels`, drop texts, put the rest into tensors."""
    fields: dict[object, Value] = {}
    cells = {key: cell for key, cell in sample.fields.items() if not _is_none(cell)}
    labels = cells.pop("label", None)
    identifiers = cells.pop("label_ids", None)
    cell = labels if labels is not None else identifiers
    if cell is not None:
        made = _label(call, features, cell) if labels is not None else _label_row(call, features, cell)
        if made is None:
            return None
        fields["labels"] = made
    for key, cell in cells.items():
        if is_text(cell):
            continue
        made = (
            stacked(call, features, cell, cell.dtype)
            if isinstance(cell, TensorValue)
            else in_tensor(call, features, cell)
        )
        if made is None:
            return None
        fields[key] = made
    return DictValue(fields, sample.closed, written=sample.written)


def _is_none(cell: Value) -> bool:
    return isinstance(cell, Constant) and cell.value is None


def _label(call: Call, features: ListValue, cell: Value) -> Value | None:
    """Convert `label`, meant to be one number: int64 for whole ones, else float32."""
    if isinstance(cell, TensorValue):
        if cell.layout is None or any(size.value != 1 for size in cell.layout.sizes):
            return Unknown() if cell.layout is None else None
        whole = cell.dtype is None or "int" in cell.dtype or cell.dtype == "bool"
        dtype = None if cell.dtype is None else "int64" if whole else "float32"
        return stacked(call, features, cell, dtype) if is_scalar(cell) else Unknown()
    if is_scalar(cell):
        return stacked(call, features, cell, "float32" if dtype_of(cell) == "float32" else "int64")
    if in_tensor(call, features, cell) is None:
        return None
    return stacked(call, features, cell, "float32") if isinstance(cell, ListValue) else Unknown()


def _label_row(call: Call, features: ListValue, cell: Value) -> Value | None:
    """Convert `label_ids`, meant to be a row."""
    if isinstance(cell, TensorValue):
        return stacked(call, features, cell, cell.dtype)
    if is_scalar(cell) or in_tensor(call, features, cell) is None:
        return None
    return stacked(call, features, cell, {"int64": "int64", "float32": "float32"}.get(dtype_of(cell) or ""))


def _with_padding(
    call: Call, given: BoundArguments, features: ListValue, sample: DictValue
) -> DictValue | None:
    batch = padded(call, given.value("tokenizer"), features, sample, Padding.of(given), True)
    if batch is not None:
        for key in ("label", "label_ids"):
            if key in batch.fields:
                batch.fields["labels"] = batch.fields.pop(key)
    return batch


def _language_modeling(
    call: Call, given: BoundArguments, features: ListValue, sample: DictValue
) -> DictValue | None:
    """Create labels from the ids, as the language modeling collator does."""
    batch = padded(call, given.value("tokenizer"), features, sample, Padding.of(given), True)
    if batch is not None:
        for key in ("special_tokens_mask", "offset_mapping"):
            batch.fields.pop(key, None)
        ids = batch.fields[IDS]
        layout = ids.layout if isinstance(ids, TensorValue) else None
        batch.fields["labels"] = TensorValue(layout, dtype="int64")
    return batch


def _seq2seq(call: Call, given: BoundArguments, features: ListValue, sample: DictValue) -> DictValue | None:
    """Pad labels to the longest of them; the key always exists, perhaps with None."""
    asked = Padding.of(given)
    labels, rest = _without_labels(sample)
    batch = padded(call, given.value("tokenizer"), features, rest, asked, True)
    if batch is None:
        return None
    fields: dict[object, Value] = {**batch.fields, "labels": NONE}
    if labels is not None and not _is_none(labels[1]):
        cell = labels[1]
        sizes = row_sizes(cell)
        by_length = asked.strategy == "max_length" and not _is_none(asked.length)
        limit = asked.target(sizes[0], features) if sizes else None
        if limit is not None and asked.strategy == "max_length" and not by_length:
            limit = None
        made = _labels(call, features, cell, limit)
        if made is None:
            return None
        fields["labels"] = made
    closed = batch.closed and _is_none(given.value("model"))
    return DictValue(fields, closed, batch.kind, written=batch.written)


def _tokens(call: Call, given: BoundArguments, features: ListValue, sample: DictValue) -> DictValue | None:
    """Pad labels to the length of the ids; longer ones keep their length."""
    labels, rest = _without_labels(sample)
    batch = padded(call, given.value("tokenizer"), features, rest, Padding.of(given), True)
    if batch is None or labels is None:
        return batch
    key, cell = labels
    sizes, ids = row_sizes(cell), row_sizes(rest.fields[IDS])
    made_ids = batch.fields[IDS]
    target = None
    if sizes and isinstance(made_ids, TensorValue) and made_ids.layout is not None:
        target = made_ids.layout.sizes[1]
        if sizes[0] != ids[0]:
            if sizes[0].value is None or target.value is None:
                return None
            target = max(sizes[0], target, key=lambda size: size.value or 0)
    made = _labels(call, features, cell, target)
    if made is None:
        return None
    return DictValue({**batch.fields, key: made}, batch.closed, batch.kind, written=batch.written)


def _without_labels(sample: DictValue) -> tuple[tuple[str, Value] | None, DictValue]:
    """Labels with their name, and the sample without them."""
    name = "label" if "label" in sample.fields else "labels"
    rest = {key: cell for key, cell in sample.fields.items() if key != name}
    found = sample.fields.get(name)
    others = DictValue(rest, sample.closed, sample.kind, sample.absent, sample.written)
    return (None if found is None else (name, found)), others


def _labels(call: Call, features: ListValue, cell: Value, size: Size | None) -> Value | None:
    """Labels in an integer tensor as wide as size; None for a certain or possible exception."""
    if is_scalar(cell) or is_text(cell) or _is_none(cell):
        return None
    if size is None:
        return Unknown()
    if varying(size, features.axes) is not None:
        return None
    made = contiguous_result(call, [count(features), size], Op.PAD_SEQUENCE, dtype="int64")
    made.row = row_of(cell)
    return made


_Maker = Callable[[Call, BoundArguments, ListValue, DictValue], DictValue | None]
_MAKERS: dict[str, _Maker] = {
    DEFAULT_CLASS: _plain_batch,
    WITH_PADDING: _with_padding,
    LANGUAGE_MODELING: _language_modeling,
    SEQ2SEQ: _seq2seq,
    TOKENS: _tokens,
}


def _ask_for_pad_token(call: Call, collator: LibraryObject, settings: dict[str, Value]) -> None:
    """Report a missing pad token of the collator's tokenizer."""
    tokenizer, padding = settings.get("tokenizer"), settings.get("padding", NONE)
    if isinstance(tokenizer, LibraryObject):
        if asks_for_pad_token(tokenizer, padding, settings.get("max_length", NONE)):
            name = collator.kind.rpartition(".")[2]
            place = collator.place or call.place
            note_padding(call, tokenizer, name, place, _given_tokenizer(place.node), later=True)


def _given_tokenizer(node: cst.CSTNode) -> cst.CSTNode | None:
    """Tokenizer passed to a collator or a trainer."""
    for index, argument in enumerate(node.args if isinstance(node, cst.Call) else ()):
        name = argument.keyword.value if argument.keyword is not None else ""
        if name in ("tokenizer", "processing_class") or (not name and not argument.star and index == 0):
            return argument.value
    return None
