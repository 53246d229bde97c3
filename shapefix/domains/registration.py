"""Unregistered attributes of modules: plain lists of layers, and trained tensors."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.domains.devices import is_module
from shapefix.interpreter import hooks
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Event
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.interpreter.values import InstanceValue, LibraryObject, Unknown, Value
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class UnregisteredSet(Event):
    """Assignment of a list, a dictionary, a tuple or a trained tensor to an attribute of a module.

    The place is that of the attribute, `self.layers`. A module registers modules and parameters only, so that
    `parameters()`, `to()` and `state_dict()` omit the rest.
    """

    owner: InstanceValue
    name: str
    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class AssignedBeforeInit(Event):
    """Assignment of a layer in a constructor without a call of `Module.__init__`.

    The place is that of the attribute; owner is the new object, constructor its `__init__`.
    """

    owner: InstanceValue
    constructor: cst.FunctionDef


@hooks.set_attribute
def _note_unregistered(ev: Evaluator, owner: Value, name: str, value: Value, node: cst.CSTNode) -> None:
    if not isinstance(owner, InstanceValue) or not is_module(ev, owner):
        return
    is_container = isinstance(value, (ListValue, DictValue, TupleValue))
    is_trained = isinstance(value, TensorValue) and requires_grad(value) is True and not value.own
    if is_container or is_trained:
        ev.emit(UnregisteredSet(ev.place(node), ev.calls, owner, name, value))


def members(value: Value) -> Iterator[Value]:
    """Yield the items of nested lists, tuples and dictionaries; for another value, the value itself.

    An Unknown represents items that are not known.
    """
    if isinstance(value, DictValue):
        if value.rest is not None:
            yield from members(value.rest)
        elif not value.closed:
            yield Unknown()
        for held in value.fields.values():
            yield from members(held)
    elif isinstance(value, (ListValue, TupleValue)):
        if value.items is not None:
            for held in value.items:
                yield from members(held)
        else:
            yield from members(value.element or Unknown())
    else:
        yield value


def registered_in(root: Value) -> frozenset[Value] | None:
    """Registered modules below a module, and itself; None if there may be others."""
    found: dict[Value, None] = {}
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if value in found:
            continue
        if isinstance(value, InstanceValue):
            if value.open:
                return None
            found[value] = None
            waiting.extend(
                held for held in value.fields.values() if isinstance(held, (InstanceValue, LibraryObject))
            )
        elif isinstance(value, LibraryObject):
            found[value] = None
            for held in value.fields.values():
                if isinstance(held, Value):
                    inner = list(members(held))
                    if held is value.fields.get("_modules") and any(
                        isinstance(one, Unknown) for one in inner
                    ):
                        return None
                    waiting.extend(inner)
    return frozenset(found)
