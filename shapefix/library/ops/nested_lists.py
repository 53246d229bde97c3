"""Conversion of nested lists of numbers to tensors."""

from __future__ import annotations

from shapefix.domains.raggedness import varying
from shapefix.interpreter.containers import ListValue, elements
from shapefix.interpreter.values import Constant, Flag, Float, Integer, Value
from shapefix.library.tensors import is_number
from shapefix.tensors.polynomials import Size


def nested_sizes(data: Value | None) -> list[Size] | None:
    """Sizes of a tensor made of nested lists of numbers; None if unknown."""
    if is_number(data):
        return []
    items = elements(data)
    if items is None:
        return _unknown_number(data) if isinstance(data, ListValue) else None
    if not items:
        return [Size.of(0)]
    inner = [nested_sizes(item) for item in items]
    first = inner[0]
    if first is None or any(sizes != first for sizes in inner):
        return None
    return [Size.of(len(items)), *first]


def _unknown_number(data: ListValue) -> list[Size] | None:
    """Sizes of a list with items not known one by one; None if they differ."""
    inner = nested_sizes(data.element)
    if inner is None or any(varying(size, data.axes) is not None for size in inner):
        return None
    return [data.length if data.length is not None else Size.symbol("rows", least=0), *inner]


def leaf_dtype(data: Value | None) -> str | None:
    """Dtype derived by torch from nested lists of numbers."""
    items = elements(data)
    if items:
        kinds = {leaf_dtype(item) for item in items}
        if kinds == {"int64", "float32"} and all(isinstance(item, Constant) for item in items):
            # One float makes all numbers floats.
            return "float32"
        return kinds.pop() if len(kinds) == 1 else None
    if isinstance(data, ListValue):
        return leaf_dtype(data.element)
    if isinstance(data, Constant):
        return {bool: "bool", int: "int64", float: "float32"}.get(type(data.value))
    if isinstance(data, Flag):
        return "bool"
    return "int64" if isinstance(data, Integer) else "float32" if isinstance(data, Float) else None
