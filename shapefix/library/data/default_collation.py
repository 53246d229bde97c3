"""Collation of samples into a batch by torch itself."""

from __future__ import annotations

from typing import TypeGuard

from shapefix.domains.devices import CPU, placed
from shapefix.domains.raggedness import may_differ
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue, TextTuple, TupleValue, elements
from shapefix.interpreter.tensor_values import Device, DeviceKind, TensorValue, requires_grad, tensor_row
from shapefix.interpreter.values import (
    TEXT,
    Constant,
    Flag,
    Float,
    Integer,
    Number,
    Text,
    Unknown,
    Value,
    present,
)
from shapefix.library.data.samples import one_of
from shapefix.library.numpy_arrays import as_array
from shapefix.library.ops.value_range import chosen, full_of
from shapefix.library.registry import function
from shapefix.library.signatures import arguments_under
from shapefix.library.tensors import as_result, contiguous_result
from shapefix.tensors.layout import contiguous, unknown_strides
from shapefix.tensors.memory_format import suggests_channels_last
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size

_DATA = "torch.utils.data"


def as_tensors(one: Value) -> Value:
    """Sample with tensors in the place of its arrays, as torch collates them."""
    array = as_array(one)
    if array is not None:
        return Unknown() if _may_be_text(array) else array
    if isinstance(one, TupleValue):
        parts = tuple(map(as_tensors, one.items))
        is_same = all(part is other for part, other in zip(parts, one.items, strict=True))
        return one if is_same else TupleValue(parts, one.names)
    if isinstance(one, DictValue):
        fields = {key: as_tensors(part) for key, part in one.fields.items()}
        if any(fields[key] is not part for key, part in one.fields.items()):
            return DictValue(fields, one.closed, one.kind, one.absent, one.written)
    return one


def _may_be_text(array: TensorValue) -> bool:
    """Check for an item of an array of unknown type, such as a file name in a table."""
    return array.dtype is None and array.layout is not None and array.layout.rank == 0


def _are_texts(column: Value) -> TypeGuard[ListValue]:
    return isinstance(column, ListValue) and isinstance(column.element, Text)


def default_collate(call: Call, one: Value, size: Size) -> Value:
    """Combine samples like this one as torch does without a collate function.

    Unknown if torch raises for some of their contents.
    """
    return _collated(call, one, size) or Unknown()


def _collated(call: Call, one: Value, size: Size) -> Value | None:
    # None would raise.
    one = present(one)
    if isinstance(one, TensorValue):
        return _stacked(call, one, size)
    array = as_array(one)
    if array is not None:
        return Unknown() if _may_be_text(array) else _stacked(call, array, size)
    if isinstance(one, Constant):
        dtype = {bool: "bool", int: "int64", float: "float64"}.get(type(one.value))
        if dtype is not None:
            return contiguous_result(call, [size], Op.COLLATE, dtype=dtype, device=_on_cpu(call))
        return ListValue(None, TEXT, size) if isinstance(one.value, str) else None
    if isinstance(one, Number):
        known = "bool" if isinstance(one, Flag) else "float64" if isinstance(one, Float) else None
        return contiguous_result(call, [size], Op.COLLATE, dtype=known, device=_on_cpu(call))
    if isinstance(one, Integer):
        made = contiguous_result(call, [size], Op.COLLATE, dtype="int64", device=_on_cpu(call))
        return full_of(made, one)
    if isinstance(one, Text):
        return ListValue(None, TEXT, size)
    if isinstance(one, (TupleValue, ListValue)):
        return _collated_row(call, one, size)
    if isinstance(one, DictValue):
        columns = {name: _collated(call, part, size) for name, part in one.fields.items()}
        fields = {name: column for name, column in columns.items() if column is not None}
        if len(fields) < len(columns):
            return None
        # The batch has the class of the samples: that of tokenizers has a method `to`.
        return DictValue(fields, one.closed, one.kind, one.absent, one.written)
    return Unknown()


def _collated_row(call: Call, one: TupleValue | ListValue, size: Size) -> Value | None:
    """Parts of samples, or rows of one length, transposed: a list with a tensor for each."""
    items = elements(one)
    if items is None:
        assert isinstance(one, ListValue)
        if may_differ(one) and size.value != 1:
            return None
        column = _collated(call, one.element, size) if one.element is not None else Unknown()
        return None if column is None else ListValue(None, column, one.length)
    parts = [_collated(call, part, size) for part in items]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if isinstance(one, TupleValue) and one.names:
        return TupleValue(tuple(known), one.names)
    return ListValue(tuple(TextTuple.of(part.contents) if _are_texts(part) else part for part in known))


def _on_cpu(call: Call) -> Device | None:
    """Batch on the CPU; its samples must be there."""
    return placed(call.ev, CPU, call.place)


def _stacked(call: Call, one: TensorValue, size: Size) -> TensorValue | None:
    device = _on_cpu(call) if one.device is not None and one.device.kind is DeviceKind.CPU else one.device
    if may_differ(one) and size.value != 1:
        return None
    if one.layout is None:
        made = as_result(call, None, Op.COLLATE, dtype=one.dtype, is_contiguous=True)
        made.row, made.graph = tensor_row(one), requires_grad(one)
        return made
    sizes = (size, *one.layout.sizes)
    # Image samples in channels_last are stacked in that order.
    ordered = suggests_channels_last(one.layout) is not False
    layout = unknown_strides(sizes) if ordered else contiguous(sizes)
    made = chosen(one, as_result(call, layout, Op.COLLATE, dtype=one.dtype, device=device))
    if made.origin is not None:
        made.origin.source = one.origin
    made.row, made.graph = tensor_row(one), requires_grad(one)
    return made


@function(f"{_DATA}.default_collate", f"{_DATA}.dataloader.default_collate")
def collate(call: Call) -> Value:
    """Combine a list of samples into a batch."""
    given = arguments_under(call, f"{_DATA}.default_collate").value("batch")
    items = elements(given)
    if items:
        return default_collate(call, one_of(call, items), Size.of(len(items)))
    if isinstance(given, ListValue) and given.element is not None:
        return default_collate(call, given.element, Size.symbol("batch_size"))
    return Unknown()
