"""What puts samples together into a batch: torch's default, the collators of transformers, the user's own.

What is claimed of a collator was executed with transformers 5.23 and 4.57: which columns it pads, what
becomes of the others, what it does to labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from shapefix.interpreter.axes import longest, now, over_samples, varying
from shapefix.interpreter.batch_events import Collated
from shapefix.interpreter.calls import Arguments, Call, call_value
from shapefix.interpreter.iteration import each, iterate
from shapefix.interpreter.joins import join, without_length
from shapefix.interpreter.rows import Origin, row_sizes
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.token_rows import row_of
from shapefix.interpreter.values import (
    NONE,
    TRUE,
    Axis,
    BoundMethod,
    Constant,
    DictValue,
    FunctionValue,
    InstanceValue,
    Integer,
    LibraryObject,
    ListValue,
    Number,
    Reference,
    Text,
    TupleValue,
    Unknown,
    Value,
    elements,
)
from shapefix.library.pad_tokens import asks_for_pad_token, note_padding
from shapefix.library.registry import declare, function, method
from shapefix.library.signatures import bound
from shapefix.library.tensors import contiguous_result
from shapefix.tensors.layout import unknown_strides
from shapefix.tensors.sizes import Size, Varying, same

_TRANSFORMERS = "transformers"
DEFAULT = f"{_TRANSFORMERS}.default_data_collator"
DEFAULT_CLASS = f"{_TRANSFORMERS}.DefaultDataCollator"
WITH_PADDING = f"{_TRANSFORMERS}.DataCollatorWithPadding"
LANGUAGE_MODELING = f"{_TRANSFORMERS}.DataCollatorForLanguageModeling"
SEQ2SEQ = f"{_TRANSFORMERS}.DataCollatorForSeq2Seq"
TOKENS = f"{_TRANSFORMERS}.DataCollatorForTokenClassification"

PADDED = frozenset({"input_ids", "attention_mask", "token_type_ids", "special_tokens_mask"})
"""What `tokenizer.pad` pads, whatever the collator; all else goes into a tensor as it is."""

_SETTINGS = "padding=True, max_length=None, pad_to_multiple_of=None"


@dataclass(frozen=True)
class _Collator:
    """A collator of transformers: its arguments, and whether it pads labels, too."""

    signature: str
    pads_labels: bool = False


_COLLATORS = {
    WITH_PADDING: _Collator(f"tokenizer, {_SETTINGS}, return_tensors='pt'"),
    LANGUAGE_MODELING: _Collator("tokenizer, mlm=True"),
    SEQ2SEQ: _Collator(
        f"tokenizer, model=None, {_SETTINGS}, label_pad_token_id=-100, return_tensors='pt'", True
    ),
    TOKENS: _Collator(f"tokenizer, {_SETTINGS}, label_pad_token_id=-100, return_tensors='pt'", True),
}
for _kind in (*_COLLATORS, DEFAULT_CLASS):
    declare(_kind, "builtins.object")


@function(*_COLLATORS, *(f"{_TRANSFORMERS}.data.{k.rpartition('.')[2]}" for k in _COLLATORS))
def make_collator(call: Call) -> Value:
    kind = f"{_TRANSFORMERS}.{call.name.rpartition('.')[2]}"
    settings = bound(_COLLATORS[kind].signature, call.arguments)
    # What a later line writes to it, `collator.mlm = False`, is a field.
    return LibraryObject(kind, settings, call.place, dict(settings))


@function(DEFAULT_CLASS)
def make_default(call: Call) -> Value:
    return LibraryObject(DEFAULT_CLASS, {}, call.place)


@method(WITH_PADDING, "__call__")
@method(LANGUAGE_MODELING, "__call__", "torch_call")
@method(SEQ2SEQ, "__call__")
@method(TOKENS, "__call__", "torch_call")
@method(DEFAULT_CLASS, "__call__")
@function(DEFAULT, f"{_TRANSFORMERS}.data.data_collator.default_data_collator")
def call_collator(call: Call) -> Value:
    """The user's own code hands features to a collator."""
    features = iterate(call.ev, call.value(0, "features") or Unknown(), call.place.node)
    collator = call.receiver if call.receiver is not None else Reference(DEFAULT)
    features, sample = _known_apart(call, features)
    batch = _by_library(call, collator, features)
    call.ev.emit(Collated(call.place, call.ev.calls, "", sample, collator, None, batch))
    return batch


def _known_apart(call: Call, features: Value) -> tuple[Value, Value]:
    """The features, and one that stands for all; where they are known one by one, what differs varies."""
    items = elements(features)
    if not items:
        return features, each(call.ev, features)
    since = now()
    return gathered(one_of(call, items), Size.of(len(items)), since)


def is_callable(collator: Value | None) -> bool:
    """Whether it is known what a collate function does."""
    if isinstance(collator, Reference):
        return collator.name.endswith((".default_data_collator", ".default_collate"))
    return isinstance(collator, (FunctionValue, BoundMethod, InstanceValue, LibraryObject))


def gathered(sample: Value, size: Size, since: int) -> tuple[ListValue, Value]:
    """The list of samples that a collate function is handed, and one of them.

    What was made since that moment was made for this one sample.
    """
    axis = Axis()
    one = over_samples(sample, axis, since)
    return ListValue(None, one, size, frozenset({axis})), one


def collate_by(call: Call, collator: Value, features: ListValue) -> Value:
    """What a collate function makes of samples; Unknown where it is not known, or raises."""
    if isinstance(collator, (LibraryObject, Reference)) and _is_known(collator):
        return _by_library(call, collator, features)
    return call_value(call.ev, collator, Arguments([features]), call.place.node)


def _is_known(collator: LibraryObject | Reference) -> bool:
    if isinstance(collator, Reference):
        return collator.name.endswith(".default_data_collator")
    return collator.kind in _COLLATORS or collator.kind == DEFAULT_CLASS


def one_of(call: Call, samples: tuple[Value, ...]) -> Value:
    """One sample that stands for all of these; what differs in size varies from one to the other."""
    one = samples[0]
    for other in samples[1:]:
        one = _alike(call, one, other)
    return one


def _alike(call: Call, left: Value, right: Value) -> Value:
    if isinstance(left, Constant) and isinstance(right, Constant) and type(left.value) is type(right.value):
        return left
    if (
        isinstance(left, DictValue)
        and isinstance(right, DictValue)
        and left.fields.keys() == right.fields.keys()
    ):
        fields = {name: _alike(call, part, right.fields[name]) for name, part in left.fields.items()}
        return DictValue(fields, left.closed and right.closed, left.kind, left.absent, left.written)
    if isinstance(left, TupleValue) and isinstance(right, TupleValue) and len(left.items) == len(right.items):
        parts = tuple(_alike(call, part, other) for part, other in zip(left.items, right.items, strict=True))
        return TupleValue(parts, left.names)
    if isinstance(left, ListValue) and isinstance(right, ListValue):
        return _alike_rows(call, left, right)
    if isinstance(left, TensorValue) and isinstance(right, TensorValue):
        return _alike_tensors(call, left, right)
    joined: Value = join(left, right)
    return joined


def _alike_rows(call: Call, left: ListValue, right: ListValue) -> Value:
    both: ListValue = join(left, right)
    if left.length is None or right.length is None or same(left.length, right.length) is not False:
        return both
    return ListValue(None, without_length(both.contents).element, _differing(call), both.axes)


def _alike_tensors(call: Call, left: TensorValue, right: TensorValue) -> Value:
    ranked = left.layout is not None and right.layout is not None and left.layout.rank == right.layout.rank
    if not ranked or left.layout == right.layout or left.layout is None or right.layout is None:
        joined: Value = join(left, right)
        return joined
    sizes = [
        _differing(call) if same(a, b) is False else a if a == b else None
        for a, b in zip(left.layout.sizes, right.layout.sizes, strict=True)
    ]
    known = [size for size in sizes if size is not None]
    layout = unknown_strides(known) if len(known) == len(sizes) else None
    return TensorValue(layout, dtype=left.dtype if left.dtype == right.dtype else None)


def _differing(call: Call) -> Size:
    origin = Origin(call.place, "given with different lengths")
    return Size.from_symbol(Varying("length", None, origin))


def _by_library(call: Call, collator: Value, features: Value) -> Value:
    features, sample = _known_apart(call, features)
    if not isinstance(features, ListValue) or not isinstance(sample, DictValue):
        return Unknown()
    if isinstance(collator, LibraryObject) and collator.kind in _COLLATORS:
        return _padded_batch(call, collator, features, sample)
    return _plain_batch(call, features, sample)


def _plain_batch(call: Call, features: ListValue, sample: DictValue) -> Value:
    """default_data_collator: `label` becomes `labels`, texts are left out, the rest goes into tensors."""
    fields: dict[object, Value] = {}
    for key, value in sample.fields.items():
        if isinstance(value, Text) or (
            isinstance(value, Constant) and isinstance(value.value, (str, type(None)))
        ):
            continue
        made = _in_tensor(call, features, value)
        if made is None:
            return Unknown()
        fields["labels" if key in ("label", "label_ids") else key] = made
    return DictValue(fields, sample.closed, written=sample.written)


def _padded_batch(call: Call, collator: LibraryObject, features: ListValue, sample: DictValue) -> Value:
    """What `tokenizer.pad` returns, and what the collator adds to it."""
    _ask_for_pad_token(call, collator)
    facts = _COLLATORS[collator.kind]
    fields: dict[object, Value] = {}
    for key, value in sample.fields.items():
        pads = key in PADDED or (facts.pads_labels and key in ("label", "labels"))
        made = _padded(call, features, value) if pads else _in_tensor(call, features, value)
        if made is None:
            return Unknown()
        fields["labels" if key in ("label", "label_ids") else key] = made
    if collator.kind == LANGUAGE_MODELING and isinstance(fields.get("input_ids"), TensorValue):
        ids = fields["input_ids"]
        assert isinstance(ids, TensorValue)
        fields["labels"] = TensorValue(ids.layout, dtype="int64")
    kind = "transformers.BatchEncoding"
    return DictValue(fields, sample.closed, kind, written=sample.written)


def _ask_for_pad_token(call: Call, collator: LibraryObject) -> None:
    """The collator pads with the tokenizer that it was made with."""
    settings = {**collator.arguments, **collator.fields}
    tokenizer, padding = settings.get("tokenizer"), settings.get("padding", TRUE)
    if isinstance(tokenizer, LibraryObject):
        if asks_for_pad_token(tokenizer, padding, settings.get("max_length", NONE)):
            name = collator.kind.rpartition(".")[2]
            place = collator.place or call.place
            note_padding(call, tokenizer, name, place, _given_tokenizer(place.node), later=True)


def _given_tokenizer(node: cst.CSTNode) -> cst.CSTNode | None:
    """The tokenizer that is handed to a collator, or to a trainer."""
    for index, argument in enumerate(node.args if isinstance(node, cst.Call) else ()):
        name = argument.keyword.value if argument.keyword is not None else ""
        if name in ("tokenizer", "processing_class") or (not name and not argument.star and index == 0):
            return argument.value
    return None


def _padded(call: Call, features: ListValue, row: Value) -> Value | None:
    sizes = row_sizes(row)
    if not sizes:
        return Unknown()
    size = longest(sizes[0], features.axes)
    made = contiguous_result(call, [_count(features), size, *sizes[1:]], "padded", dtype="int64")
    made.row = row_of(row)
    return made


def _in_tensor(call: Call, features: ListValue, value: Value) -> Value | None:
    """A column made a tensor as it is; None where that raises."""
    if isinstance(value, (Constant, Integer, Number)):
        number = value.value if isinstance(value, Constant) else 1.0 if isinstance(value, Number) else 1
        dtype = {bool: "bool", int: "int64", float: "float32"}.get(type(number))
        return contiguous_result(call, [_count(features)], "collated", dtype=dtype) if dtype else None
    if isinstance(value, Text):
        return None
    sizes = row_sizes(value)
    if not sizes:
        return Unknown()
    if any(varying(size, features.axes) is not None for size in sizes):
        return None
    if not isinstance(value, TensorValue) and not _holds_numbers(value):
        return Unknown()
    dtype = value.dtype if isinstance(value, TensorValue) else None
    made = contiguous_result(call, [_count(features), *sizes], "collated", dtype=dtype)
    made.row = row_of(value)
    return made


def _holds_numbers(row: Value) -> bool:
    """Whether a row is one of numbers, as far as is known: no rows inside of it, no texts."""
    items = elements(row)
    inner = items if items is not None else (row.element,) if isinstance(row, ListValue) else ()
    return all(
        isinstance(item, (Integer, Number, Unknown))
        or (isinstance(item, Constant) and isinstance(item.value, (int, float)))
        for item in inner
    )


def _count(features: ListValue) -> Size:
    return features.length if features.length is not None else Size.symbol("batch_size")
