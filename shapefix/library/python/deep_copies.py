"""copy.deepcopy: containers, modules and objects without shared contents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.facts import Facts
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    Constant,
    InstanceValue,
    Integer,
    LibraryObject,
    Number,
    Text,
    Unknown,
    Value,
)
from shapefix.library.nn.module import MODULE
from shapefix.library.registry import derives, function
from shapefix.library.signatures import arguments_under

_DEEPEST = 12


class _Copier:
    """One call of `deepcopy`, with a single copy of each object."""

    def __init__(self, ev: Evaluator) -> None:
        self._ev = ev
        self._made: dict[int, Value] = {}

    def copy(self, value: Value, depth: int = 0) -> Value:
        if depth > _DEEPEST:
            return Unknown()
        if id(value) in self._made:
            return self._made[id(value)]
        if isinstance(value, ListValue):
            contents = value.contents
            items = contents.items and tuple(self.copy(item, depth + 1) for item in contents.items)
            element = contents.element and self.copy(contents.element, depth + 1)
            return ListValue(items, element, contents.length, contents.axes)
        if isinstance(value, DictValue):
            fields = self._fields(value.fields, depth)
            return DictValue(fields, value.closed, value.kind, value.absent, value.written)
        if isinstance(value, TupleValue):
            return TupleValue(tuple(self.copy(item, depth + 1) for item in value.items), value.names)
        if isinstance(value, InstanceValue):
            made = InstanceValue(value.cls, open=value.open)
            self._made[id(value)] = made
            made.fields.update(self._fields(value.fields, depth))
            made.facts = Facts(value.facts)
            self._tell(value, made)
            return made
        if isinstance(value, LibraryObject) and derives(value.kind, MODULE):
            layer = LibraryObject(value.kind, value.arguments, value.place, {}, Facts(value.facts))
            self._made[id(value)] = layer
            layer.fields.update(self._fields(value.fields, depth))
            self._tell(value, layer)
            return layer
        if isinstance(value, TensorValue):
            self._made[id(value)] = copied = _copied_tensor(value)
            return copied
        return value if isinstance(value, (Constant, Integer, Number, Text)) else Unknown()

    def _tell(self, value: Value, made: Value) -> None:
        for tell in hooks.copied:
            tell(self._ev, value, made)

    def _fields(self, fields: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
        return {
            key: self.copy(item, depth + 1) if isinstance(item, Value) else item
            for key, item in fields.items()
        }


def _copied_tensor(tensor: TensorValue) -> TensorValue:
    """Copy a tensor with its storage: the strides stay the same. One with a history is refused."""
    made = TensorValue(
        tensor.layout,
        contiguous=tensor.contiguous,
        dtype=tensor.dtype,
        device=tensor.device,
        origin=tensor.origin,
        certain=tensor.certain,
    )
    made.copy_sizes(tensor)
    made.own = tensor.own
    made.graph = None if tensor.sources else tensor.graph
    return made


@function("copy.deepcopy")
def deep_copy(call: Call) -> Value:
    """Copy without shared contents."""
    return _Copier(call.ev).copy(arguments_under(call, "copy.deepcopy").value("x"))
