"""Moves of non-tensors to a device: the lists, texts and numbers of a batch have no `.to`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.domains.devices import MoveOfNonTensor
from shapefix.interpreter.attributes import MOVES, NUMBER_OR_NONE
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.modules import children, dotted_name
from shapefix.interpreter.names import peek
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Scope, Unknown, Value
from shapefix.library.registry import function
from shapefix.tensors.ops import Op

_KINDS = ("builtins.list", "builtins.tuple", "builtins.str", "builtins.dict", NUMBER_OR_NONE)


@function(*(f"{kind}.{name}" for kind in _KINDS for name in sorted(MOVES)))
def moved(call: Call) -> Value:
    """Emit the move of a non-tensor; it raises AttributeError at run time."""
    value = call.receiver
    if value is None or id(value) in call.ev.type_checked or call.ev.expects("AttributeError"):
        return Unknown()
    batch, key = _entry(call, value)
    # A number outside of a batch may as well be a member of an enumeration.
    is_known = batch is not None or not call.name.startswith(NUMBER_OR_NONE)
    if is_known and _is_plain(value) and not _is_guarded(call, key):
        call.ev.emit(MoveOfNonTensor(call.place, call.ev.calls, value, key, batch))
    return Unknown()


def _is_guarded(call: Call, key: object) -> bool:
    """Check for a branch around the call with the value or its key in its condition."""
    names = {
        name
        for name, held in _visible(call)
        if key is not None and isinstance(held, Constant) and held.value == key
    }
    node = call.place.node
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        names.add(dotted_name(node.func.value))
    return any(_mentions(test, names) for test in call.ev.frame.tests)


def _mentions(node: cst.CSTNode, names: set[str]) -> bool:
    return dotted_name(node) in names - {""} or any(_mentions(child, names) for child in children(node))


def _is_plain(value: Value) -> bool:
    """Check for a list with known items; little is known of other iterables."""
    if isinstance(value, ListValue):
        return bool(value.items) or (value.element is not None and not isinstance(value.element, Unknown))
    if isinstance(value, TupleValue):
        return not value.names
    if isinstance(value, DictValue):
        # Other dictionaries may represent objects of unknown classes.
        held = [part.origin for part in value.fields.values() if isinstance(part, TensorValue)]
        return value.kind == "builtins.dict" and any(step and step.op is Op.COLLATE for step in held)
    return True


def _visible(call: Call) -> Iterator[tuple[str, Value]]:
    """Names visible to the code at the call, innermost scope first."""
    scope: Scope | None = call.ev.frame.scope
    while scope is not None:
        yield from scope.names.items()
        scope = scope.outer


def _entry(call: Call, value: Value) -> tuple[DictValue | None, object]:
    """Dictionary of a value and its key there: `batch["x"].to`, or the `v` of `k, v`."""
    node = call.place.node
    subject = node.func.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else None
    names: list[Value] = []
    if isinstance(subject, cst.Subscript) and len(subject.slice) == 1:
        index = subject.slice[0].slice
        if isinstance(index, cst.Index) and isinstance(index.value, (cst.Name, cst.SimpleString)):
            names.append(peek(call.ev, index.value))
    visible = [held for _, held in _visible(call)]
    names += visible
    seen = [held for held in visible if isinstance(held, DictValue)]
    keys = [name.value for name in names if isinstance(name, Constant) and isinstance(name.value, str)]
    for held in seen:
        for key in keys:
            if held.fields.get(key) is value:
                return held, key
    return None, None
