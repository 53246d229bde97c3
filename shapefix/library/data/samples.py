"""Samples before collation: a representative of all, the list of them, and their number."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from shapefix.domains.raggedness import over_samples
from shapefix.interpreter.any_items import any_text
from shapefix.interpreter.calls import Arguments, Call, call_method
from shapefix.interpreter.classes import member
from shapefix.interpreter.containers import Contents, DictValue, ListValue, RaggedDim, TupleValue, elements
from shapefix.interpreter.iteration import each
from shapefix.interpreter.joins import join, without_length
from shapefix.interpreter.modules import Place
from shapefix.interpreter.per_item_sizes import now
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, InstanceValue, Integer, LibraryObject, Value, as_size
from shapefix.library.data.datasets.cells import Lengths
from shapefix.library.registry import lookup_method
from shapefix.tensors.layout import unknown_strides
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import BatchSize

LONGEST_ROW = 64
"""Rows of more items than this are not compared item by item."""


def gathered(sample: Value, size: Size, since: int) -> tuple[ListValue, Value]:
    """List of samples passed to a collate function, and one of them.

    Values created since that moment belong to this one sample.
    """
    axis = RaggedDim()
    one = over_samples(sample, axis, since)
    if size.value == 1:
        return ListValue((one,)), one
    return ListValue(None, one, size, frozenset({axis})), one


def known_apart(call: Call, features: Value) -> tuple[Value, Value]:
    """Features, and a representative; differences between features known one by one vary."""
    items = elements(features)
    if not items or len(items) == 1:
        return features, each(call.ev, features)
    since = now()
    return gathered(one_of(call, items), Size.of(len(items)), since)


def one_of(call: Call, samples: Sequence[Value], what: str = "given with different lengths") -> Value:
    """Representative of these samples; differing sizes vary from one to the other.

    what completes "…: the rows keep their own lengths". Rows whose lengths agree sample by sample have
    the same length.
    """
    return _alike(samples, Lengths(call.place, what))


def _alike(values: Sequence[Value], lengths: Lengths) -> Value:
    first = values[0]
    if all(value is first for value in values):
        return first
    if isinstance(first, Constant) and all(_is_flag(value) for value in values):
        return first
    dictionaries = [value for value in values if isinstance(value, DictValue)]
    if isinstance(first, DictValue) and len(dictionaries) == len(values):
        return _alike_dictionaries(first, dictionaries, lengths)
    tuples = [value for value in values if isinstance(value, TupleValue)]
    if isinstance(first, TupleValue) and len(tuples) == len(values):
        if all(len(value.items) == len(first.items) for value in tuples):
            columns = zip(*(value.items for value in tuples), strict=True)
            return TupleValue(tuple(_alike(column, lengths) for column in columns), first.names)
    lists = [value for value in values if isinstance(value, ListValue)]
    if len(lists) == len(values):
        return _alike_rows(lists, lengths)
    tensors = [value for value in values if isinstance(value, TensorValue)]
    if len(tensors) == len(values):
        return _alike_tensors(tensors, lengths)
    if all(_is_number(value) for value in values):
        return without_length(Contents(tuple(values))).element or first
    text = any_text(values)
    if text is not None:
        return text
    joined: Value = reduce(join, values)
    return joined


def _is_flag(value: Value) -> bool:
    return isinstance(value, Constant) and isinstance(value.value, bool)


def _is_number(value: Value) -> bool:
    return isinstance(value, Integer) or (
        isinstance(value, Constant) and isinstance(value.value, (int, float)) and not _is_flag(value)
    )


def _alike_dictionaries(first: DictValue, others: Sequence[DictValue], lengths: Lengths) -> Value:
    if any(other.fields.keys() != first.fields.keys() for other in others):
        joined: Value = reduce(join, others)
        return joined
    fields = {key: _alike([other.fields[key] for other in others], lengths) for key in first.fields}
    closed = all(other.closed for other in others)
    return DictValue(fields, closed, first.kind, first.absent, first.written)


def _alike_rows(rows: Sequence[ListValue], lengths: Lengths) -> Value:
    length = lengths.one([row.length for row in rows])
    known = [row.items for row in rows if row.items is not None]
    if length is not None and length.value is not None and len(known) == len(rows):
        if length.value <= LONGEST_ROW:
            items = zip(*known, strict=True)
            return ListValue(tuple(_alike(item, lengths) for item in items), axes=rows[0].axes)
    both: Contents = reduce(join, (row.contents for row in rows))
    return ListValue(None, without_length(both).element, length, both.axes)


def _alike_tensors(tensors: Sequence[TensorValue], lengths: Lengths) -> Value:
    first = tensors[0]
    layouts = [tensor.layout for tensor in tensors if tensor.layout is not None]
    ranks = {layout.rank for layout in layouts}
    if len(layouts) < len(tensors) or len(ranks) > 1 or all(layout == layouts[0] for layout in layouts):
        joined: Value = reduce(join, tensors)
        return joined
    sizes = [lengths.one(column) for column in zip(*(layout.sizes for layout in layouts), strict=True)]
    found = [size for size in sizes if size is not None]
    layout = unknown_strides(found) if len(found) == len(sizes) else None
    same_dtype = all(tensor.dtype == first.dtype for tensor in tensors)
    return TensorValue(layout, dtype=first.dtype if same_dtype else None)


def length_of(call: Call, dataset: Value | None) -> Size | None:
    """Number of samples in a dataset; None if unknown."""
    if isinstance(dataset, TensorValue):
        return dataset.known_size(0)
    if isinstance(dataset, TupleValue):
        return Size.of(len(dataset.items))
    if isinstance(dataset, ListValue):
        return dataset.length
    if isinstance(dataset, LibraryObject):
        tensors = elements(dataset.fields.get("tensors"))
        if tensors:
            return length_of(call, tensors[0]) if isinstance(tensors[0], TensorValue) else None
        method = lookup_method(dataset.kind, "__len__")
        if method is None:
            return None
        return as_size(method(Call(call.ev, f"{dataset.kind}.__len__", call.place, Arguments(), dataset)))
    if isinstance(dataset, InstanceValue) and member(dataset.cls, "__len__") is not None:
        return as_size(call_method(call.ev, dataset, "__len__", Arguments(), call.place.node))
    return None


def batch_size(name: str, full: Size | None, length: Size | None, loader: Place | None) -> Size:
    """Size of any one batch of full samples out of length; a remainder makes the last batch smaller.

    name is the name of the symbol for a size that is not a constant.
    """
    if full is None:
        return Size.symbol(name)
    if full.value is not None and length is not None and length.value is not None and full.value > 0:
        if length.value % full.value == 0:
            return full
        if length.value < full.value:
            return length
    return Size.from_symbol(BatchSize(name, full, length, loader))
