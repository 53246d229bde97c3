"""Conversion of a column of samples to one tensor by a collator without padding of that column."""

from __future__ import annotations

from shapefix.domains.devices import CPU, placed
from shapefix.domains.raggedness import row_sizes, varying
from shapefix.domains.tokens import row_of
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, TupleValue, elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Flag, Integer, Number, Unknown, Value, is_text
from shapefix.library.ops.value_range import chosen, full_of
from shapefix.library.tensors import contiguous_result
from shapefix.tensors.dtypes import is_floating
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size

_OF_PYTHON = {bool: "bool", int: "int64", float: "float32"}


def is_scalar(value: Value) -> bool:
    """Check for a cell with one number, perhaps in a tensor of its own."""
    if isinstance(value, TensorValue):
        return value.layout is not None and value.layout.rank == 0
    if isinstance(value, Constant):
        return type(value.value) in _OF_PYTHON
    return isinstance(value, (Integer, Number))


def count(features: ListValue) -> Size:
    """Number of samples."""
    return features.length if features.length is not None else Size.symbol("batch_size")


def in_tensor(call: Call, features: ListValue, cell: Value, *, unpacked: bool = False) -> Value | None:
    """Result of `torch.tensor` for a column with such cells; None for a certain or possible exception.

    features are the samples; unpacked converts tensors to lists first.
    """
    if isinstance(cell, TensorValue):
        if not unpacked and not is_scalar(cell):
            return None if cell.layout is not None else Unknown()
        dtype = python_dtype(cell.dtype)
    elif is_scalar(cell) or _holds_numbers(cell):
        dtype = dtype_of(cell)
    else:
        return Unknown() if _may_be_numbers(cell) else None
    return stacked(call, features, cell, dtype)


def stacked(call: Call, features: ListValue, cell: Value, dtype: str | None) -> Value | None:
    """Stack cells of one size; None if their sizes differ."""
    sizes = row_sizes(cell)
    if not sizes and not is_scalar(cell):
        return Unknown()
    if any(varying(size, features.axes) is not None for size in sizes):
        return None
    device = cell.device if isinstance(cell, TensorValue) else CPU
    made = contiguous_result(
        call, [count(features), *sizes], Op.COLLATE, dtype=dtype, device=placed(call.ev, device, call.place)
    )
    made.row = row_of(cell) if sizes else None
    if isinstance(cell, TensorValue):
        return chosen(cell, made)
    return full_of(made, cell) if isinstance(cell, Integer) else made


def python_dtype(dtype: str | None) -> str | None:
    """Dtype of a tensor's values after conversion to Python numbers."""
    if dtype is None or dtype == "bool":
        return dtype
    return "float32" if is_floating(dtype) else "int64" if "int" in dtype else None


def dtype_of(cell: Value) -> str | None:
    """Dtype of the result of `torch.tensor` for a number or a row of them; None if unknown."""
    if isinstance(cell, Constant):
        return _OF_PYTHON.get(type(cell.value))
    if isinstance(cell, Integer):
        return "int64"
    if isinstance(cell, Number):
        return "bool" if isinstance(cell, Flag) else "float32"
    found = {dtype_of(item) for item in _inner(cell)}
    if None in found or not found:
        return None
    return next(name for name in ("float32", "int64", "bool") if name in found)


def _inner(row: Value) -> tuple[Value, ...]:
    items = elements(row)
    if items is not None:
        return items
    return (row.element,) if isinstance(row, ListValue) and row.element is not None else ()


def _holds_numbers(row: Value) -> bool:
    """Check for a row of numbers, as far as is known: no nested rows, no texts."""
    if not isinstance(row, (ListValue, TupleValue)):
        return False
    return all(
        isinstance(item, (Integer, Number, Unknown))
        or (isinstance(item, Constant) and type(item.value) in _OF_PYTHON)
        for item in _inner(row)
    )


def _may_be_numbers(cell: Value) -> bool:
    if isinstance(cell, (ListValue, TupleValue)):
        return not any(is_text(item) or isinstance(item, TensorValue) for item in _inner(cell))
    return isinstance(cell, Unknown)
