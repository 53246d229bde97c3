"""Events for combined rows."""

from __future__ import annotations

from shapefix.domains.batches import MODEL_OUTPUT, ListGiven, Stacked
from shapefix.domains.raggedness import has_rows
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, TupleValue
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Integer, LibraryObject, Unknown, Value
from shapefix.library.registry import function, method


def note_rows(call: Call, data: Value | None) -> None:
    """Report that a tensor is made of a list of rows, if they are rows or tensors."""
    if isinstance(data, (ListValue, TupleValue)) and has_rows(data):
        call.ev.emit(Stacked(call.place, call.ev.calls, call.name, data))


def note_list(call: Call, given: Value | None, method: str = "") -> None:
    """Report a list or tuple of tensors, an int, or the output object of a model, in place of a tensor.

    method is the tensor's method or attribute that the code reads, empty for the argument of a call.
    """
    if isinstance(given, (ListValue, TupleValue)):
        items = given.items
        first = items[0] if items else given.element if isinstance(given, ListValue) else None
        if not isinstance(first, TensorValue) or not first.certain:
            return
    elif isinstance(given, Integer):
        if method:
            return
    elif not isinstance(given, LibraryObject) or given.kind != MODEL_OUTPUT:
        return
    call.ev.emit(ListGiven(call.place, call.ev.calls, given, method))


OF_TENSORS = (
    *("argmax", "argmin", "backward", "contiguous", "detach", "dim", "float", "item", "log_softmax"),
    *("mean", "permute", "reshape", "sigmoid", "size", "softmax", "squeeze", "transpose", "unsqueeze"),
    *("view", "@shape", "@dtype", "@device"),
)
"""Methods and attributes of tensors that neither tuples nor outputs of models have."""


@function(*(f"builtins.tuple.{name}" for name in OF_TENSORS))
@method(MODEL_OUTPUT, *OF_TENSORS)
def read_of_no_tensor(call: Call) -> Value:
    """Report a tensor's method of a tuple or of a model's output."""
    note_list(call, call.receiver, call.name.rpartition(".")[2].removeprefix("@"))
    return Unknown()
