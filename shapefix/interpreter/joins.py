"""What a variable holds where two paths meet: only what both agree on."""

from __future__ import annotations

from typing import Any

from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    NUMBER,
    Constant,
    Integer,
    Number,
    Reference,
    TupleValue,
    Unknown,
    Value,
)
from shapefix.tensors.layout import Layout, unknown_strides


def join(left: Any, right: Any) -> Any:
    """The join of two values, or of two contents of a container (layouts, tuples of items)."""
    if left is right:
        return left
    if isinstance(left, Value) and isinstance(right, Value):
        return _join_values(left, right)
    if isinstance(left, Layout) and isinstance(right, Layout):
        return join_layouts(left, right)
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return tuple(join(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, Value) or isinstance(right, Value):
        return left if right is None else right if left is None else Unknown()
    return None


def _join_values(left: Value, right: Value) -> Value:
    if isinstance(left, Constant) and isinstance(right, Constant):
        a, b = left.value, right.value
        if type(a) is type(b) and a == b:
            return left
        return NUMBER if _is_number(left) and _is_number(right) else Unknown()
    if _is_number(left) and _is_number(right):
        return NUMBER
    if isinstance(left, Integer) and isinstance(right, Integer) and left.size == right.size:
        return left
    if isinstance(left, TensorValue) and isinstance(right, TensorValue):
        return _join_tensors(left, right)
    if isinstance(left, TupleValue) and isinstance(right, TupleValue) and len(left.items) == len(right.items):
        return TupleValue(
            tuple(
                _join_values(a, b) if a is not b else a for a, b in zip(left.items, right.items, strict=True)
            ),
            left.names if left.names == right.names else (),
        )
    if isinstance(left, Reference) and isinstance(right, Reference) and left.name == right.name:
        return left
    return Unknown()


def _is_number(value: Value) -> bool:
    # An int may yet be asked for as a size, and then it must be its own symbol.
    return isinstance(value, Number) or (isinstance(value, Constant) and isinstance(value.value, float))


def _join_tensors(left: TensorValue, right: TensorValue) -> TensorValue:
    same = left.layout == right.layout
    return TensorValue(
        left.layout if same else join_layouts(left.layout, right.layout),
        dtype=left.dtype if left.dtype == right.dtype else None,
        device=left.device if left.device == right.device else None,
        storage=left.storage if left.storage is right.storage else None,
        origin=left.origin if same else None,
        views=left.views if left.views == right.views else (),
        certain=left.certain and right.certain,
    )


def join_layouts(left: Layout | None, right: Layout | None) -> Layout | None:
    """The layout of a tensor that has one of two layouts: the sizes where they agree, strides unknown."""
    if left is None or right is None:
        return None
    if left == right:
        return left
    if left.sizes == right.sizes:
        return unknown_strides(left.sizes)
    return None
