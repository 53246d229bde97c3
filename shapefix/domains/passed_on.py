"""Variables passed to functions of the project after a line with a discarded conversion of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from shapefix.interpreter import hooks
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import children, dotted_name
from shapefix.interpreter.names import peek, resolved
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import FunctionValue, Value
from shapefix.light_dataclasses import dataclass

MOVES = frozenset({"to", "cuda", "cpu", "xpu"})
"""Methods of tensors for another device."""


@dataclass(frozen=True, eq=False, slots=True)
class PassedOn(Event):
    """Calls of project functions with the variable of a discarded move, in the same function."""

    callees: Mapping[cst.Call, FunctionValue]


@hooks.discard
def _note_callees(
    ev: Evaluator,
    node: cst.Expr,
    call: cst.Call,
    function: str,
    receiver: Value,
    result: Value,
    name: str | None,
    held: TensorValue | None,
) -> None:
    if held is None or not name or function.rpartition(".")[2] not in MOVES:
        return
    body = ev.function or ev.frame.module.tree
    callees = {}
    for each in _calls_with(body, name):
        called = resolved(ev, peek(ev, each.func)) if dotted_name(each.func) else None
        if isinstance(called, FunctionValue):
            callees[each] = called
    if callees:
        ev.emit(PassedOn(ev.place(node), ev.calls, callees))


def _calls_with(node: cst.CSTNode, name: str) -> Iterator[cst.Call]:
    """Yield the calls with a variable as one of their arguments."""
    if isinstance(node, cst.Call) and any(dotted_name(argument.value) == name for argument in node.args):
        yield node
    for child in children(node):
        yield from _calls_with(child, name)
