"""Masked labels: writes of -100, and the variables and dictionaries with the written memory."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Unknown, Value
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class Holder:
    """Variable, or key of a dictionary in it, with a value in the same memory as a written one.

    value is the tensor, the list itself or a list with it as a row. body is the function, or the file, of the
    variable; at is the running place in it, and set_at the place where the key was set.
    """

    name: str
    key: str | None
    value: Value
    body: cst.CSTNode
    at: Place
    set_at: Place | None = None


@dataclass(frozen=True, eq=False, slots=True)
class MaskWritten(Event):
    """Write of -100 into a tensor or a list, and its holders; the innermost function's come first."""

    written: TensorValue | ListValue
    subject: cst.CSTNode | None
    holders: tuple[Holder, ...]


def note_mask(
    ev: Evaluator,
    written: TensorValue | ListValue,
    value: Value | None,
    node: cst.CSTNode,
    subject: cst.CSTNode | None,
) -> None:
    """Report a write of -100, with all names of the written memory."""
    if is_mask(value) and not ev.silenced:
        ev.emit(MaskWritten(ev.place(node), ev.calls, written, subject, tuple(_holders(ev, written, node))))


def _holders(ev: Evaluator, written: Value, node: cst.CSTNode) -> Iterator[Holder]:
    for depth in range(min(len(ev.calls) + 1, len(ev.frames))):
        frame = ev.frames[-1 - depth]
        at = ev.place(node) if depth == 0 else ev.calls[-depth]
        if at.module is not frame.module:
            return
        scope = frame.scope
        while scope.comprehension and scope.outer is not None:
            scope = scope.outer
        body = ev.running[-1 - depth] if depth < len(ev.running) else frame.module.tree
        for name, value in scope.names.items():
            if _shares(value, written):
                yield Holder(name, None, value, body, at)
            elif isinstance(value, DictValue):
                for key, held in value.fields.items():
                    if isinstance(key, str) and _shares(held, written):
                        yield Holder(name, key, held, body, at, value.written.get(key))


def _shares(value: Value | None, written: Value) -> bool:
    if isinstance(value, Unknown):
        value = value.tensor
    if isinstance(written, TensorValue):
        return isinstance(value, TensorValue) and value.storage is written.storage
    if not isinstance(value, ListValue):
        return False
    return value is written or value.element is written or any(item is written for item in value.items or ())


MASK = -100
"""Label ignored by the losses of torch."""


def is_mask(value: Value | None) -> bool:
    """Check whether value is -100, or a list of nothing else."""
    if isinstance(value, ListValue):
        items = value.items
        return all(is_mask(item) for item in items) if items else is_mask(value.element)
    return isinstance(value, Constant) and type(value.value) is int and value.value == MASK
