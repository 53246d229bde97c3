"""What is told to the checks where rows are put together."""

from __future__ import annotations

from shapefix.interpreter.batch_events import Stacked
from shapefix.interpreter.calls import Call
from shapefix.interpreter.rows import has_rows
from shapefix.interpreter.values import ListValue, TupleValue, Value


def note_rows(call: Call, data: Value | None) -> None:
    """Tell the checks that a tensor is made of a list of rows, where these are rows, or tensors."""
    if isinstance(data, (ListValue, TupleValue)) and has_rows(data):
        call.ev.emit(Stacked(call.place, call.ev.calls, call.name, data))
