"""The parameters of modules, on their way into an optimizer: filtered, joined, in groups."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.training import WeightsWritten
from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.iteration import each, iterate
from shapefix.interpreter.values import (
    TEXT,
    InstanceValue,
    LibraryObject,
    Parameter,
    Unknown,
    Value,
)
from shapefix.library.nn.module import MODULE
from shapefix.library.registry import function, method


def _parameter(call: Call) -> Value:
    owner = call.receiver
    is_known = isinstance(owner, (InstanceValue, LibraryObject))
    return Parameter(frozenset({owner})) if is_known and owner is not None else Unknown("parameter")


@method(MODULE, "parameters")
def parameters(call: Call) -> Value:
    return ListValue(None, _parameter(call))


@method(MODULE, "named_parameters")
def named_parameters(call: Call) -> Value:
    return ListValue(None, TupleValue((TEXT, _parameter(call))))


@hooks.read_unknown
def _note_own_write(ev: Evaluator, owner: Value, name: str) -> None:
    """Report the use of `parameter.data` in a loop over parameters, or of an in-place method."""
    is_written = name.endswith("_") and not name.endswith("__") and name != "requires_grad_"
    if isinstance(owner, Parameter) and (name == "data" or is_written) and ev.frame.loops:
        ev.emit(WeightsWritten(ev.place(ev.frame.loops[-1].node), ev.calls, owner.modules))


@hooks.set_attribute
def _note_assignment(ev: Evaluator, owner: Value, name: str, value: Value, node: cst.CSTNode) -> None:
    """Report `parameter.data = value`."""
    if isinstance(owner, Parameter) and name == "data":
        ev.emit(WeightsWritten(ev.place(node), ev.calls, owner.modules))


@function("builtins.filter")
def filtered(call: Call) -> Value:
    """An unknown selection of the items."""
    given = call.value(1)
    if given is None:
        return ListValue(None)
    return ListValue(None, each(call.ev, iterate(call.ev, given, call.place.node)))


def owners_of(value: Value | None) -> frozenset[Value] | None:
    """Modules of these parameters, or of some of them; None if there may be others.

    value is an optimizer's argument: parameters, or groups of them.
    """
    if isinstance(value, Parameter):
        return value.modules
    if isinstance(value, DictValue):
        # A dictionary of a model's parameters by name has no key "params".
        return owners_of(value.fields.get("params")) if value.closed else None
    if isinstance(value, ListValue) and value.items is None:
        return owners_of(value.element)
    if not isinstance(value, (TupleValue, ListValue)):
        return None
    found: frozenset[Value] = frozenset()
    for item in value.items or ():
        owners = owners_of(item)
        if owners is None:
            return None
        found |= owners
    return found
