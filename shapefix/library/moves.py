"""Sending to a device what cannot be sent: the lists, texts and numbers of a batch have no `.to`."""

from __future__ import annotations

import libcst as cst

from shapefix.interpreter.attributes import MOVES, NUMBER_OR_NONE
from shapefix.interpreter.batch_events import Moved
from shapefix.interpreter.calls import Call
from shapefix.interpreter.names import glance
from shapefix.interpreter.scopes import Scope
from shapefix.interpreter.values import Constant, DictValue, ListValue, TupleValue, Unknown, Value
from shapefix.library.registry import function

_KINDS = ("builtins.list", "builtins.tuple", "builtins.str", "builtins.dict", NUMBER_OR_NONE)


@function(*(f"{kind}.{name}" for kind in _KINDS for name in sorted(MOVES)))
def moved(call: Call) -> Value:
    """An AttributeError, at the latest at the second look."""
    value = call.receiver
    if value is not None and _is_plain(value) and not call.ev.expects("AttributeError"):
        batch, key = _entry(call, value)
        if batch is not None or not (isinstance(value, Constant) and value.value is None):
            call.ev.emit(Moved(call.place, call.ev.calls, value, key, batch))
    return Unknown()


def _is_plain(value: Value) -> bool:
    """Whether a list is known to be one by what is in it: of other iterables hardly anything is known."""
    if isinstance(value, ListValue):
        return bool(value.items) or (value.element is not None and not isinstance(value.element, Unknown))
    if isinstance(value, TupleValue):
        return not value.names
    return not isinstance(value, DictValue) or value.kind == "builtins.dict"


def _entry(call: Call, value: Value) -> tuple[DictValue | None, object]:
    """The dictionary that a value stands in, and its key there: `batch["x"].to`, or the `v` of `k, v`."""
    node = call.place.node
    subject = node.func.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else None
    names: list[Value] = []
    if isinstance(subject, cst.Subscript) and len(subject.slice) == 1:
        index = subject.slice[0].slice
        if isinstance(index, cst.Index) and isinstance(index.value, (cst.Name, cst.SimpleString)):
            names.append(glance(call.ev, index.value))
    seen: list[DictValue] = []
    scope: Scope | None = call.ev.frame.scope
    while scope is not None:
        names += scope.names.values()
        seen += [held for held in scope.names.values() if isinstance(held, DictValue)]
        scope = scope.outer
    keys = [name.value for name in names if isinstance(name, Constant) and isinstance(name.value, str)]
    for held in seen:
        for key in keys:
            if held.fields.get(key) is value:
                return held, key
    return None, None
