"""`tokenizer.pad`: rows of ids get one length, whatever else the samples hold stays as it is."""

from __future__ import annotations

from shapefix.interpreter.axes import longest, now
from shapefix.interpreter.batch_events import Collated
from shapefix.interpreter.calls import Call
from shapefix.interpreter.iteration import each, iterate
from shapefix.interpreter.rows import ragged, row_sizes
from shapefix.interpreter.token_rows import row_of
from shapefix.interpreter.values import (
    DictValue,
    LibraryObject,
    ListValue,
    Reference,
    Unknown,
    Value,
    elements,
)
from shapefix.library.batch_encoding import ENCODING
from shapefix.library.collators import PADDED, gathered, one_of
from shapefix.library.pad_tokens import asks_for_pad_token, note_padding, strategy
from shapefix.library.registry import method
from shapefix.library.signatures import Given, bound
from shapefix.library.tensors import contiguous_result
from shapefix.library.tokenizers import TOKENIZER
from shapefix.library.tokenizing import subject_of, tensors_asked
from shapefix.tensors.sizes import Size

_PAD = (
    "encoded_inputs, padding=True, max_length=None, pad_to_multiple_of=None, padding_side=None, "
    "return_attention_mask=None, return_tensors=None"
)


@method(TOKENIZER, "pad")
def pad(call: Call) -> Value:
    """An encoding of padded rows, or tensors; Unknown where what was not padded makes no tensor."""
    given = Given(bound(_PAD, call.arguments))
    tokenizer = call.receiver
    if isinstance(tokenizer, LibraryObject):
        if asks_for_pad_token(tokenizer, given.value("padding"), given.value("max_length")):
            note_padding(call, tokenizer, "tokenizer.pad", subject=subject_of(call))
    sample: Value | None = None
    samples = given.value("encoded_inputs")
    if isinstance(samples, DictValue):
        columns = samples
    else:
        samples, sample = _apart(call, samples)
        if not isinstance(sample, DictValue):
            return Unknown()
        rows = samples.contents
        fields: dict[object, Value] = {
            key: ListValue(None, row, rows.length, rows.axes) for key, row in sample.fields.items()
        }
        columns = DictValue(fields, sample.closed, written=sample.written)
    batch = _padded(call, columns, strategy(given.value("padding")), tensors_asked(given))
    if sample is not None and tensors_asked(given):
        padder = Reference(f"{TOKENIZER}.pad")
        call.ev.emit(Collated(call.place, call.ev.calls, "", sample, padder, tokenizer, batch))
    return batch


def _apart(call: Call, samples: Value) -> tuple[ListValue, Value]:
    """The list of samples, and what any one of them is like."""
    known = iterate(call.ev, samples, call.place.node)
    items = elements(known)
    if items:
        return gathered(one_of(call, items), Size.of(len(items)), now())
    rows = known if isinstance(known, ListValue) else ListValue(None)
    return rows, each(call.ev, rows)


def _padded(call: Call, columns: DictValue, padding: str | None, tensors: bool | None) -> Value:
    if padding != "longest" or tensors is None:
        return Unknown()
    fields: dict[object, Value] = {}
    for key, column in columns.fields.items():
        if isinstance(column, ListValue) and key in PADDED:
            column = _of_one_length(column)
        if tensors:
            if ragged(column) is not None:
                return Unknown()
            column = _tensor(call, column)
        fields[key] = column
    return DictValue(fields, columns.closed, ENCODING, written=columns.written)


def _of_one_length(column: ListValue) -> Value:
    row = column.element
    if not isinstance(row, ListValue) or row.length is None:
        return Unknown()
    padded = ListValue(None, row.element, longest(row.length, column.axes))
    return ListValue(None, padded, column.length, column.axes)


def _tensor(call: Call, column: Value) -> Value:
    if not isinstance(column, ListValue) or not isinstance(column.element, ListValue):
        return Unknown()
    sizes = row_sizes(column.element)
    count = column.length or Size.symbol("batch_size")
    if not sizes:
        return Unknown()
    made = contiguous_result(call, [count, *sizes], "padded", dtype="int64")
    made.row = row_of(column.element)
    return made
