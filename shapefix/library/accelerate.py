"""accelerate: what is prepared still takes and returns the same."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, TupleValue
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import NONE, LibraryObject, Unknown, Value
from shapefix.library.registry import declare, function, method

ACCELERATOR = "accelerate.Accelerator"
declare(ACCELERATOR, "builtins.object")


@function(ACCELERATOR)
def accelerator(call: Call) -> Value:
    return LibraryObject(ACCELERATOR, dict(call.arguments.keywords), call.place)


@method(ACCELERATOR, "prepare")
def prepare(call: Call) -> Value:
    """One object, or a tuple of as many as were handed over."""
    given = call.arguments.positional
    if call.arguments.open:
        return ListValue(None)
    return given[0] if len(given) == 1 else TupleValue(tuple(given))


@method(ACCELERATOR, "prepare_model", "prepare_data_loader", "prepare_optimizer", "unwrap_model")
def prepare_one(call: Call) -> Value:
    for name in ("model", "data_loader", "optimizer"):
        given = call.value(0, name)
        if given is not None:
            return given
    return Unknown()


@method(ACCELERATOR, "gather", "gather_for_metrics", "pad_across_processes", "reduce")
def gathered(call: Call) -> Value:
    """On one process the tensor itself, on several the batches of all."""
    given = call.value(0)
    return TensorValue(dtype=given.dtype) if isinstance(given, TensorValue) else Unknown()


@method(ACCELERATOR, "wait_for_everyone", "log", "print", "end_training")
def nothing(call: Call) -> Value:
    return NONE
