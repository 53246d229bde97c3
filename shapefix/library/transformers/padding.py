"""`tokenizer.pad`: rows of ids get one length; other columns stay unchanged."""

from __future__ import annotations

from dataclasses import field

from shapefix.domains.batches import Collated
from shapefix.domains.devices import CPU, placed
from shapefix.domains.raggedness import longest, row_sizes, varying
from shapefix.domains.tokens import row_of
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue, elements
from shapefix.interpreter.iteration import iterate
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Integer, LibraryObject, Reference, Unknown, Value
from shapefix.library.data.column_tensors import count, dtype_of, in_tensor, is_scalar, python_dtype
from shapefix.library.data.samples import known_apart, one_of
from shapefix.library.registry import method
from shapefix.library.signatures import BoundArguments, bound
from shapefix.library.tensors import contiguous_result
from shapefix.library.transformers.batch_encoding import ENCODING
from shapefix.library.transformers.pad_tokens import (
    asks_for_pad_token,
    lacks_pad_token,
    note_padding,
    strategy,
)
from shapefix.library.transformers.tokenizers import TOKENIZER
from shapefix.library.transformers.tokenizing import inputs_of, subject_of, tensors_asked
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import ceil_divide
from shapefix.tensors.symbols import PerItemSize

_PAD = (
    "encoded_inputs, padding=True, max_length=None, pad_to_multiple_of=None, padding_side=None, "
    "return_attention_mask=None, return_tensors=None"
)
IDS, MASK = "input_ids", "attention_mask"
PADDED = frozenset({IDS, MASK, "token_type_ids", "special_tokens_mask"})
"""Columns padded by `tokenizer.pad`; others are converted to tensors unchanged."""


@dataclass(frozen=True)
class Padding:
    """Requested padding: padding, max_length and pad_to_multiple_of, as given."""

    padding: Value
    length: Value
    multiple: Value
    _rounded: dict[Size, Size] = field(default_factory=dict)

    @classmethod
    def of(cls, given: BoundArguments) -> Padding:
        """Arguments of a call, or of a collator."""
        return cls(given.value("padding"), given.value("max_length"), given.value("pad_to_multiple_of"))

    @property
    def strategy(self) -> str | None:
        """Strategy "longest", "max_length" or "none"; None if unknown."""
        return strategy(self.padding)

    def fails(self, tokenizer: Value | None) -> bool:
        """Check for a tokenizer without a pad token; padding raises."""
        return (
            isinstance(tokenizer, LibraryObject)
            and lacks_pad_token(tokenizer)
            and asks_for_pad_token(tokenizer, self.padding, self.length)
        )

    def target(self, size: Size, features: ListValue) -> Size:
        """Length after padding of rows of this length; the same each time."""
        if self.strategy == "none":
            return size
        if self.strategy == "longest":
            return self._multiple(longest(size, features.axes))
        if self.strategy == "max_length" and isinstance(self.length, Constant) and self.length.value:
            wanted = Size.of(self.length.value)
            # Longer rows keep their length.
            if size.value is not None:
                return self._multiple(wanted if size.value <= self.length.value else size)
        return self._rounded.setdefault(size, Size.symbol("padded"))

    def _multiple(self, size: Size) -> Size:
        if isinstance(self.multiple, Constant) and not self.multiple.value:
            return size
        known = self.multiple.value if isinstance(self.multiple, Constant) else None
        if size not in self._rounded:
            if isinstance(known, int) and size.value is not None:
                self._rounded[size] = ceil_divide(size, Size.of(known)) * known
            else:
                symbol = size.only_symbol
                source = symbol.source if isinstance(symbol, PerItemSize) else None
                self._rounded[size] = Size.from_symbol(PerItemSize("longest", None, source))
        return self._rounded[size]


@method(TOKENIZER, "pad")
def pad(call: Call) -> Value:
    """Encoding of padded rows, or tensors; Unknown if the other columns do not form tensors."""
    given = BoundArguments(bound(_PAD, call.arguments))
    tokenizer, asked, tensors = call.receiver, Padding.of(given), tensors_asked(given)
    if isinstance(tokenizer, LibraryObject):
        if asks_for_pad_token(tokenizer, asked.padding, asked.length):
            note_padding(call, tokenizer, "tokenizer.pad", subject=subject_of(call))
    samples = given.value("encoded_inputs")
    if isinstance(samples, DictValue):
        sample = _of_columns(call, samples)
        rows = samples.fields.get(IDS)
        if sample is None or not isinstance(rows, ListValue):
            return Unknown()
        axes = frozenset(axis for c in samples.fields.values() if isinstance(c, ListValue) for axis in c.axes)
        features = ListValue(None, sample, rows.length, axes)
        return padded(call, tokenizer, features, sample, asked, tensors) or Unknown()
    found, one = known_apart(call, iterate(call.ev, samples, call.place.node))
    if not isinstance(one, DictValue) or not isinstance(found, ListValue):
        return Unknown()
    batch = padded(call, tokenizer, found, one, asked, tensors) or Unknown()
    if tensors or isinstance(one.fields.get(IDS), TensorValue):
        padder = Reference(f"{TOKENIZER}.pad")
        call.ev.emit(Collated(call.place, call.ev.calls, "", one, padder, tokenizer, batch))
    return batch


def _of_columns(call: Call, columns: DictValue) -> DictValue | None:
    """One sample of a dictionary of columns; None for a single sample or unknown contents."""
    fields: dict[object, Value] = {}
    for key, column in columns.fields.items():
        items = elements(column)
        cell = one_of(call, items) if items else column.element if isinstance(column, ListValue) else None
        fields[key] = cell if cell is not None else Unknown()
    if not isinstance(fields.get(IDS), (ListValue, TupleValue)):
        return None
    return DictValue(fields, columns.closed, written=columns.written)


def padded(
    call: Call,
    tokenizer: Value | None,
    features: ListValue,
    sample: DictValue,
    asked: Padding,
    tensors: bool | None,
) -> DictValue | None:
    """Encoding of samples such as this one, of tensors or of lists; None if it raises or may raise."""
    ids = sample.fields.get(IDS)
    if ids is None or is_scalar(ids) or tensors is None or asked.strategy is None or asked.fails(tokenizer):
        return None
    unpacked = isinstance(ids, TensorValue)
    sizes = row_sizes(ids)
    target = asked.target(sizes[0], features) if sizes else None
    fields: dict[object, Value] = {}
    for key, cell in sample.fields.items():
        made: Value | None
        if key not in PADDED:
            if not tensors and not unpacked:
                made = _listed(cell, features)
            else:
                made = in_tensor(call, features, cell, unpacked=unpacked)
        elif isinstance(cell, TensorValue) and not unpacked:
            made = None
        elif target is None:
            made = Unknown()
        else:
            made = _to_length(call, features, cell, sizes, target, in_tensors=tensors or unpacked)
        if made is None:
            return None
        fields[key] = made
    closed = sample.closed
    inputs = inputs_of(tokenizer)
    if MASK not in fields:
        if inputs is None or MASK in inputs:
            fields[MASK] = _mask(call, fields[IDS], call.arguments.keywords.get("return_attention_mask"))
        closed = closed and inputs is not None
    return DictValue(fields, closed, ENCODING, written=sample.written)


def _mask(call: Call, ids: Value, asked: Value | None) -> Value:
    """Attention mask of ids without one."""
    if asked is not None:
        return Unknown()
    if isinstance(ids, TensorValue) and ids.layout is not None:
        sizes = ids.layout.sizes[:2]
        return contiguous_result(call, sizes, Op.PAD_SEQUENCE, dtype="int64", device=ids.device)
    if isinstance(ids, ListValue) and isinstance(ids.element, ListValue):
        row = ListValue(None, Integer(Size.symbol("mask", least=0)), ids.element.length)
        return ListValue(None, row, ids.length, ids.axes)
    return Unknown()


def _to_length(
    call: Call,
    features: ListValue,
    cell: Value,
    ids: tuple[Size, ...],
    target: Size,
    *,
    in_tensors: bool,
) -> Value | None:
    """Column extended by as many items as the ids: to target if it has their length."""
    sizes = row_sizes(cell)
    if not sizes:
        return None if is_scalar(cell) else Unknown()
    size = target if sizes[0] == ids[0] else sizes[0] + target - ids[0]
    if not in_tensors:
        item = cell.element if isinstance(cell, ListValue) else None
        if item is None and isinstance(cell, ListValue) and cell.items:
            item = one_of(call, cell.items)
        return _rows(ListValue(None, item, size), features)
    if any(varying(one, features.axes) is not None for one in (size, *sizes[1:])):
        return None
    known = python_dtype(cell.dtype) if isinstance(cell, TensorValue) else dtype_of(cell)
    # Padding ids are integers: a bool column becomes one of integers.
    dtype = known if known != "bool" or size == sizes[0] else None
    device = placed(call.ev, cell.device if isinstance(cell, TensorValue) else CPU, call.place)
    whole = [count(features), size, *sizes[1:]]
    made = contiguous_result(call, whole, Op.PAD_SEQUENCE, dtype=dtype, device=device)
    made.row = row_of(cell)
    return made


def _listed(cell: Value, features: ListValue) -> Value:
    """Unpadded column: the list of its cells."""
    return _rows(cell if not isinstance(cell, Constant) else Unknown(), features)


def _rows(cell: Value, features: ListValue) -> ListValue:
    return ListValue(None, cell, features.length, features.axes)
