"""Devices of the parameters of layers and models, as far as every use of them is visible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import libcst as cst

from shapefix.domains.devices import OF_MODULE, DeviceValue, ModuleDevice, shared
from shapefix.interpreter.calls import Call
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import Device, DeviceKind, TensorValue
from shapefix.interpreter.values import InstanceValue, LibraryObject, Value, facts_of
from shapefix.library.nn.training import has_weights
from shapefix.library.ops.devices import joint, meet
from shapefix.library.rejections import operands_in
from shapefix.library.tensors import device_asked


def made_where(call: Call, settings: Mapping[str, Value]) -> ModuleDevice | None:
    """Device of a module created here; a loss keeps its weights on their device."""
    for name in ("weight", "pos_weight"):
        given = settings.get(name)
        if isinstance(given, TensorValue):
            # A tensor without dimensions on the CPU goes with those on a GPU; class weights have one.
            may_be_scalar = name == "pos_weight" and (given.layout is None or not given.layout.rank)
            return None if may_be_scalar else _here(call, given.device)
    asked = device_asked(call)
    if asked is not None and asked.by_default:
        asked = replace(asked, place=_construction(call))
    return _here(call, asked)


def _construction(call: Call) -> Place:
    """Return the creation of the object, seen from its `super().__init__()`."""
    around = (call.place, *reversed(call.ev.calls))
    return next((place for place in around if not _is_of_super(place.node)), call.place)


def _is_of_super(node: cst.CSTNode) -> bool:
    """Check for a call of a method of `super()`."""
    while True:
        if type(node) is cst.Attribute:
            node = node.value
        elif type(node) is cst.Call:
            node = node.func
            if type(node) is cst.Name:
                return node.value == "super"
        else:
            return False


def _here(call: Call, found: Device | None) -> ModuleDevice | None:
    return None if found is None else ModuleDevice(found, call.ev.entry_point)


_SPREAD = frozenset({"device_map", "quantization_config", "load_in_8bit", "load_in_4bit"})


def model_where(call: Call) -> ModuleDevice | None:
    """Device of a model of transformers, possibly spread over several devices."""
    is_plain = _SPREAD.isdisjoint(call.arguments.keywords)
    return made_where(call, {}) if is_plain else None


def note_model_place(call: Call, made: Mapping[str, Value]) -> None:
    """Record the device of the result of a transformers model, as note_place does."""
    known = where_is(call, call.receiver)
    given = {str(number): value for number, value in enumerate(call.arguments.positional)}
    given |= call.arguments.keywords
    if known is not None:
        meet(call, given, layer=call.receiver, weights=known)
        known = _of_result(known)
    for part in made.values():
        if isinstance(part, TensorValue):
            part.device = known


def where_is(call: Call, module: Value | None) -> Device | None:
    """Device of the parameters of a module; None if the code may have sent them anywhere."""
    known = facts_of(module).known(ModuleDevice)
    return known.device if known is not None and known.entry_point == call.ev.entry_point else None


def _of_result(weights: Device) -> Device:
    return replace(weights, by_default=False, within=None, of_weights=weights.kind is DeviceKind.CPU)


def device_of_model(call: Call) -> Value:
    """`model.device` of the models of transformers and Lightning: the device of the parameters."""
    return DeviceValue(where_is(call, call.receiver) or shared())


def send(call: Call, modules: list[InstanceValue | LibraryObject], found: Device | None) -> None:
    """Record that modules were sent to a device; None for an unknown one."""
    for module in modules:
        if ModuleDevice in module.facts:
            call.ev.journal.write(module.facts, ModuleDevice, _here(call, found))


def _after_report(tensors: Sequence[TensorValue]) -> Device | None:
    """Device of a tensor computed by a module left on the CPU; None without such an input."""
    devices = [tensor.device for tensor in tensors if tensor.device is not None]
    return next(
        (each for each in devices if each.kind is DeviceKind.SHARED and each.symbol is not OF_MODULE.symbol),
        None,
    )


def note_place(
    call: Call,
    name: str,
    given: Mapping[str, Value],
    settings: Mapping[str, Value],
    made: Value,
    layer: Value,
) -> None:
    """Record the device of a layer's result; report an input on another device than the layer."""
    weighted = has_weights(name, settings) or any(
        isinstance(settings.get(key), TensorValue) for key in ("weight", "pos_weight")
    )
    known = where_is(call, layer) if weighted else None
    weights = (known or OF_MODULE) if weighted else None
    apart = meet(call, given, function=name, layer=layer, weights=weights)
    if known is not None and known.by_default:
        # The result of a layer counts as placed by its weights, not by the default device.
        weights = _of_result(known)
    # Layers next to one that was not moved were not moved either: one report is enough.
    was_left = apart is not None and known is not None and known.kind is DeviceKind.CPU
    tensors = [operand.tensor for operand in operands_in(given)]
    after = _after_report(tensors) if known is not None and known.kind is DeviceKind.CPU else None
    found = shared() if was_left else after or apart or weights or joint(tensors)
    for part in getattr(made, "items", None) or (made,):
        if isinstance(part, TensorValue) and not any(part is value for value in given.values()):
            part.device = found
