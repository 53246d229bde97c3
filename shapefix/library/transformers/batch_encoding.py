"""Result of a tokenizer: a dictionary of rows or tensors, and other facts of the tokens."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.iteration import each
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Unknown, Value
from shapefix.library.ops.devices import destination, sent
from shapefix.library.registry import declare, method

ENCODING = "transformers.BatchEncoding"
declare(ENCODING, "builtins.object")

_KEYS = (
    "input_ids",
    "attention_mask",
    "token_type_ids",
    "labels",
    "special_tokens_mask",
    "offset_mapping",
    "length",
    "overflow_to_sample_mapping",
    "decoder_input_ids",
    "decoder_attention_mask",
    "pixel_values",
    "position_ids",
)


@method(ENCODING, *(f"@{key}" for key in _KEYS))
def entry(call: Call) -> Value:
    """Read `encoding.input_ids` as `encoding["input_ids"]`."""
    owner = call.receiver
    return owner.read(call.name.rpartition(".")[2]) if isinstance(owner, DictValue) else Unknown()


@method(ENCODING, "@data")
def data(call: Call) -> Value:
    """Plain dictionary inside: writes to it are writes to the encoding."""
    owner = call.receiver
    if not isinstance(owner, DictValue):
        return Unknown()
    inner = DictValue(owner.fields, owner.closed, absent=owner.absent)
    inner.written = owner.written
    return inner


@method(ENCODING, "to")
def moved(call: Call) -> Value:
    """Move the tensors in place, and return the encoding itself."""
    owner = call.receiver
    if isinstance(owner, DictValue):
        found = destination(call)
        for key, value in list(owner.fields.items()):
            if isinstance(value, TensorValue):
                call.ev.journal.write(owner.fields, key, sent(value, found))
    return owner or Unknown()


@method(ENCODING, "convert_to_tensors")
def converted(call: Call) -> Value:
    owner = call.receiver
    if isinstance(owner, DictValue):
        for key in owner.fields:
            call.ev.journal.write(owner.fields, key, Unknown())
    return owner or Unknown()


@method(ENCODING, "word_ids", "tokens", "sequence_ids")
def of_each_token(call: Call) -> Value:
    """List as long as the requested row."""
    owner = call.receiver
    rows = owner.read("input_ids") if isinstance(owner, DictValue) else None
    if not isinstance(rows, ListValue):
        return ListValue(None)
    inner = each(call.ev, rows)
    return ListValue(None, None, inner.length if isinstance(inner, ListValue) else rows.length)


@method(ENCODING, "char_to_token", "char_to_word", "token_to_chars", "token_to_word", "word_to_tokens")
@method(ENCODING, "@encodings")
def not_known(call: Call) -> Value:
    return Unknown()
