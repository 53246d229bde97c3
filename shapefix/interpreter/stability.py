"""Stability: whether the facts of a value after one iteration of a loop also hold after the next one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from shapefix.interpreter.containers import Contents, DictValue, ListValue, TupleValue
from shapefix.interpreter.facts import Fact
from shapefix.interpreter.joins import join
from shapefix.interpreter.tensor_values import Device, TensorValue, ValueRange
from shapefix.interpreter.values import (
    BoundMethod,
    ClassValue,
    Constant,
    FunctionValue,
    InstanceValue,
    Integer,
    LibraryObject,
    ModulePart,
    Unknown,
    Value,
)
from shapefix.tensors.layout import Layout
from shapefix.tensors.polynomials import Size, every_symbol

DEEPEST = 4
"""Maximum depth of compared containers."""
ALL_OLD = 1 << 62
"""Moment after the creation of all symbols: none may take another one's place."""


def is_stable(before: Any, after: Any, since: int, depth: int = 0) -> bool:
    """Check that no fact of a value differs from those of the iteration before.

    Symbols created after the moment since are new ones in each iteration, and may take each other's place.
    """
    if before is after or depth > DEEPEST:
        return True
    if isinstance(before, TensorValue) and isinstance(after, TensorValue):
        return _is_stable_tensor(before, after, since)
    if isinstance(before, Unknown) and not isinstance(before, ModulePart):
        return _is_stable_unknown(before, after, since)
    if isinstance(before, Size) and isinstance(after, Size):
        return _is_stable_size(before, after, since)
    if isinstance(before, Layout) and isinstance(after, Layout):
        return _are_stable((*before.sizes, *before.strides), (*after.sizes, *after.strides), since, depth)
    if isinstance(before, Integer) and isinstance(after, Integer):
        return _is_stable_size(before.size, after.size, since)
    if isinstance(before, Constant) and isinstance(after, Constant):
        return type(before.value) is type(after.value) and before.value == after.value
    if isinstance(before, Device) and isinstance(after, Device):
        return (before.kind, before.name, before.symbol) == (after.kind, after.name, after.symbol)
    if type(before) is not type(after):
        return before is None
    return _is_stable_whole(before, after, since, depth + 1)


def has_new_sizes(value: Value | None, since: int, depth: int = 0) -> bool:
    """Check for sizes created by each iteration, in a tensor or in the items of a container."""
    if isinstance(value, TensorValue):
        return value.layout is not None and any(_is_new(size, since) for size in value.layout.sizes)
    if isinstance(value, Integer):
        return _is_new(value.size, since)
    if depth > DEEPEST or not isinstance(value, (TupleValue, ListValue, DictValue)):
        return False
    parts: list[Value | None] = (
        [*value.fields.values()] if isinstance(value, DictValue) else [*(value.items or ())]
    )
    if isinstance(value, ListValue):
        parts.append(value.element)
        if value.length is not None and _is_new(value.length, since):
            return True
    return any(has_new_sizes(part, since, depth + 1) for part in parts)


def _is_stable_whole(before: Any, after: Any, since: int, depth: int) -> bool:
    """Compare two containers, objects or facts of one type."""
    if isinstance(before, TupleValue):
        return _are_stable(before.items, after.items, since, depth)
    if isinstance(before, ListValue):
        return is_stable(before.contents, after.contents, since, depth)
    if isinstance(before, Contents):
        if (before.items is None) != (after.items is None):
            return False
        one, other = ((*(each.items or ()), each.element, each.length) for each in (before, after))
        return _are_stable(one, other, since, depth)
    if isinstance(before, (DictValue, InstanceValue, LibraryObject)):
        return _is_of_same_kind(before, after) and _are_stable_fields(
            before.fields, after.fields, since, depth
        )
    if isinstance(before, FunctionValue):
        return before.node is after.node
    if isinstance(before, ClassValue):
        return before.node is after.node
    if isinstance(before, BoundMethod):
        one, other = ((each.receiver, each.function) for each in (before, after))
        return _are_stable(one, other, since, depth)
    if isinstance(before, (Fact, ValueRange)) and is_dataclass(before):
        names = [each.name for each in fields(before)]
        return _are_stable(
            [getattr(before, name) for name in names], [getattr(after, name) for name in names], since, depth
        )
    if isinstance(before, Value):
        return join(before, after) is before
    return bool(before == after)


def _is_of_same_kind(before: Any, after: Any) -> bool:
    if isinstance(before, InstanceValue):
        return is_stable(before.cls, after.cls, 0)
    return before.kind == after.kind and getattr(before, "closed", None) == getattr(after, "closed", None)


def _are_stable_fields(before: dict[Any, Any], after: dict[Any, Any], since: int, depth: int) -> bool:
    return before.keys() == after.keys() and all(
        is_stable(value, after[key], since, depth) for key, value in before.items()
    )


def _are_stable(before: Iterable[Any], after: Iterable[Any], since: int, depth: int) -> bool:
    one, other = tuple(before), tuple(after)
    return len(one) == len(other) and all(
        is_stable(a, b, since, depth) for a, b in zip(one, other, strict=True)
    )


def _is_stable_tensor(before: TensorValue, after: TensorValue, since: int) -> bool:
    one, other = (
        (each.layout, each.dtype, each.device, each.graph, each.extremes, each.contiguous or None)
        for each in (before, after)
    )
    return _are_stable(one, other, since, 0)


def _is_stable_unknown(before: Unknown, after: Any, since: int) -> bool:
    """Compare an unknown value with its successor, each with its facts as a tensor."""
    if before.tensor is None or before.tensor.layout is None:
        return True
    other = after.tensor if isinstance(after, Unknown) else after
    return isinstance(other, TensorValue) and _is_stable_tensor(before.tensor, other, since)


def _is_stable_size(before: Size, after: Size, since: int) -> bool:
    return before == after or (_is_new(before, since) and _is_new(after, since))


def _is_new(size: Size, since: int) -> bool:
    return any(symbol.serial > since for symbol in every_symbol(size))
