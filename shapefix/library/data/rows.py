"""Events for combined rows."""

from __future__ import annotations

from shapefix.domains.batches import ListGiven, Stacked
from shapefix.domains.raggedness import has_rows
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, TupleValue
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value


def note_rows(call: Call, data: Value | None) -> None:
    """Report that a tensor is made of a list of rows, if they are rows or tensors."""
    if isinstance(data, (ListValue, TupleValue)) and has_rows(data):
        call.ev.emit(Stacked(call.place, call.ev.calls, call.name, data))


def note_list(call: Call, given: Value | None) -> None:
    """Report that a layer gets a list of tensors instead of one."""
    if isinstance(given, (ListValue, TupleValue)):
        items = given.items
        first = items[0] if items else given.element if isinstance(given, ListValue) else None
        if isinstance(first, TensorValue) and first.certain:
            call.ev.emit(ListGiven(call.place, call.ev.calls, given))
