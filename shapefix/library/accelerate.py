"""accelerate: `prepare()` and its effects on models, loaders and optimizers."""

from __future__ import annotations

from shapefix.domains.devices import DeviceValue, chosen
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, TupleValue
from shapefix.interpreter.facts import Fact, Facts
from shapefix.interpreter.tensor_values import Device, TensorValue
from shapefix.interpreter.values import NONE, LibraryObject, Unknown, Value, facts_of
from shapefix.library.data.loaders import LOADER, Sent
from shapefix.library.registry import declare, derives, function, method
from shapefix.library.signatures import bound
from shapefix.light_dataclasses import dataclass

ACCELERATOR = "accelerate.Accelerator"
PARAMETERS = {
    "prepare_model": "model",
    "prepare_data_loader": "data_loader",
    "prepare_optimizer": "optimizer",
    "unwrap_model": "model",
    "gather": "tensor",
    "gather_for_metrics": "input_data",
    "pad_across_processes": "tensor",
    "reduce": "tensor",
}
"""First parameters of an accelerator's methods: the value that they return in another form."""

declare(ACCELERATOR, "builtins.object")


def _given(call: Call) -> Value:
    name = PARAMETERS[call.name.rpartition(".")[2]]
    return bound(name, call.arguments)[name]


@dataclass(frozen=True, slots=True)
class PreparedDevice(Fact):
    """Device of all objects prepared by an accelerator."""

    device: Device


@function(ACCELERATOR)
def accelerator(call: Call) -> Value:
    return LibraryObject(ACCELERATOR, dict(call.arguments.keywords), call.place)


@method(ACCELERATOR, "@device")
def device(call: Call) -> Value:
    """Device shared by all prepared objects."""
    facts = facts_of(call.receiver)
    prepared = facts.known(PreparedDevice)
    if prepared is None:
        prepared = facts[PreparedDevice] = PreparedDevice(chosen())
    return DeviceValue(prepared.device)


def _prepared(value: Value) -> Value:
    """Let batches of a loader go to a device of its own choice; return other values unchanged."""
    if isinstance(value, LibraryObject) and derives(value.kind, LOADER):
        facts = Facts({**value.facts, Sent: Sent()})
        return LibraryObject(value.kind, value.arguments, value.place, dict(value.fields), facts)
    return value


@method(ACCELERATOR, "prepare")
def prepare(call: Call) -> Value:
    """Return one object, or a tuple of as many as were passed."""
    given = [_prepared(value) for value in call.arguments.positional]
    if call.arguments.open:
        return ListValue(None)
    return given[0] if len(given) == 1 else TupleValue(tuple(given))


@method(ACCELERATOR, "prepare_model", "prepare_data_loader", "prepare_optimizer", "unwrap_model")
def prepare_one(call: Call) -> Value:
    return _prepared(_given(call))


@method(ACCELERATOR, "gather", "gather_for_metrics", "pad_across_processes", "reduce")
def gathered(call: Call) -> Value:
    """Return the tensor itself on one process, the batches of all processes on several."""
    given = _given(call)
    return TensorValue(dtype=given.dtype) if isinstance(given, TensorValue) else Unknown()


@method(ACCELERATOR, "wait_for_everyone", "log", "print", "end_training")
def returns_none(call: Call) -> Value:
    return NONE
