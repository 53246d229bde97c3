"""Devices of tensors and modules, as far as the code determines them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import ClassVar

import libcst as cst

from shapefix.interpreter import hooks
from shapefix.interpreter.classes import outside_bases
from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.evaluator import Evaluator, Frame
from shapefix.interpreter.events import Event, OperationEvent
from shapefix.interpreter.facts import Fact
from shapefix.interpreter.joins import join_values
from shapefix.interpreter.modules import Place, nodes
from shapefix.interpreter.tensor_values import Device, DeviceKind, TensorValue, is_same_device
from shapefix.interpreter.values import (
    Constant,
    InstanceValue,
    Integer,
    Lost,
    Text,
    Unknown,
    Value,
    as_tensor,
)
from shapefix.light_dataclasses import dataclass

CPU = Device(DeviceKind.CPU, "cpu")
ASKED_CPU = Device(DeviceKind.CPU, "cpu", "explicit")
"""The CPU, because the code says so."""
OF_MODULE = Device(DeviceKind.SHARED, symbol=object())
"""The device of a module's parameters, and of its inputs, if nothing else is known of it."""


@dataclass(eq=False, slots=True)
class Placement:
    """State of devices at this moment of a run: the default for new tensors."""

    contexts: list[Device] = field(default_factory=list)
    """The devices of the open `with torch.device(...)` blocks, outermost first."""


class DeviceValue(Value):
    """A `torch.device`."""

    __slots__ = ("device",)

    def __init__(self, device: Device) -> None:
        self.device = device


@dataclass(frozen=True, eq=False, slots=True)
class ModuleDevice(Fact):
    """Device of a module's parameters, and its entry point of validity; a join forgets it."""

    device: Device
    entry_point: int


class DeviceName(Text):
    """Text equal to "cpu" or the name of a GPU."""

    __slots__ = ("device",)

    def __init__(self, device: Device) -> None:
        self.device = device


@dataclass(frozen=True, eq=False, slots=True)
class DeviceMismatch(OperationEvent):
    """Operands on two devices, or an input of a layer on another device than its weights.

    here and there are the numbers of the operands on the CPU and elsewhere, None for the weights; cpu and
    other are the two devices. tensors are the names that certainly hold tensors at this moment, by the
    running function.
    """

    here: int | None
    there: int | None
    cpu: Device
    other: Device
    tensors: Mapping[cst.CSTNode, frozenset[str]]


@dataclass(frozen=True, eq=False, slots=True)
class NumpyOfGpu(Event):
    """Conversion to NumPy of a tensor on a GPU, or of a list of such tensors; torch raises here.

    function is the method or the function of NumPy, subject the expression of the tensor or the list.
    """

    function: str
    subject: cst.BaseExpression
    tensor: TensorValue
    device: Device
    is_list: bool


def chosen() -> Device:
    """Device chosen by the machine or a setting, different from all others."""
    return Device(DeviceKind.CHOSEN, symbol=object())


def shared() -> Device:
    """Device of a value without known facts."""
    return Device(DeviceKind.SHARED, symbol=object())


_GPUS = ("cuda", "mps", "xpu", "hip", "npu", "hpu")
_NAMES = ("device", "dev", "gpu", "cuda", "rank", "xpu", "mps")
_SETTINGS = frozenset(
    {"self", "args", "arg", "opt", "opts", "cfg", "config", "conf", "hparams", "params", "hps", "FLAGS"}
)


def named_device(name: object) -> Device | None:
    """Device named by a string or number, as torch reads it; None for other values."""
    if isinstance(name, int) and not isinstance(name, bool):
        return Device(DeviceKind.GPU, f"cuda:{name}")
    if not isinstance(name, str):
        return None
    kind = name.partition(":")[0]
    if kind == "cpu":
        return ASKED_CPU
    return Device(DeviceKind.GPU, name) if kind in _GPUS else None


def device_of(value: Value | None) -> Device | None:
    """Device of a value, as torch reads it; None for any device."""
    if isinstance(value, Constant):
        return named_device(value.value)
    if isinstance(value, (DeviceValue, DeviceName)):
        return value.device
    if isinstance(value, (Text, Integer)):
        return chosen()
    if isinstance(value, Unknown) and is_named_as_device(value):
        known = value.attributes.get("<device>")
        if not isinstance(known, DeviceValue):
            known = value.attributes["<device>"] = DeviceValue(_of_name(value.hint))
        return known.device
    return None


def is_named_as_device(value: Unknown) -> bool:
    """Check for an unknown value with a usual name of a device in the code, but not a lost one."""
    if isinstance(value, Lost):
        return False
    last = value.hint.rpartition(".")[2].lower()
    return any(word in last for word in _NAMES)


def _of_name(name: str) -> Device:
    """Device in a variable: chosen for a setting, otherwise a tensor's, as in `self.x.device`."""
    *owners, _ = name.split(".")
    is_setting = owners in ([], ["self"]) or not _SETTINGS.isdisjoint(set(owners) - {"self"})
    return chosen() if is_setting else shared()


def placed(ev: Evaluator, device: Device | None, place: Place) -> Device | None:
    """Device of a value created or moved by the code at place."""
    if device is None:
        return None
    source = None if device.place is None else device.source or device
    return replace(device, place=place, by_default=False, source=source)


def by_default(ev: Evaluator, place: Place) -> Device | None:
    """Default device for a tensor created at place; None for any device."""
    contexts = ev.state[Placement].contexts
    if contexts:
        return placed(ev, contexts[-1], place)
    if any(frame.module.mentions("set_default_") for frame in ev.frames):
        return None
    return Device(DeviceKind.CPU, "cpu", None, place, method_of_module(ev), True)


FORWARD = frozenset({"forward", "training_step", "validation_step", "test_step", "predict_step"})
"""Methods of modules for computing on inputs."""


def method_of_module(ev: Evaluator) -> cst.FunctionDef | None:
    """The running constructor or computing method of a module."""
    for frame in reversed(ev.frames):
        function = frame.function
        if isinstance(function, cst.FunctionDef) and is_module(ev, frame.receiver):
            if function.name.value == "__init__" or function.name.value in FORWARD:
                return function
    return None


def is_forward(ev: Evaluator, function: cst.CSTNode | None, receiver: Value | None) -> bool:
    """Check for a computing method of a module, such as forward."""
    return (
        isinstance(function, cst.FunctionDef) and function.name.value in FORWARD and is_module(ev, receiver)
    )


def is_module(ev: Evaluator, value: Value | None) -> bool:
    """Check for an object of a project class derived from torch.nn.Module."""
    return isinstance(value, InstanceValue) and any(
        ev.library.inherits(base, "torch.nn.Module") for base in outside_bases(value.cls)
    )


@join_values
def join_names(left: Value, right: Value, depth: int = 0) -> Value | None:
    """Join two device names, or two devices; None for other values."""
    if isinstance(left, DeviceValue) and isinstance(right, DeviceValue):
        return left if is_same_device(left.device, right.device) else _either(left, right)
    sides = (left, right)
    if any(_is_shared(side) for side in sides):
        return Lost()
    if not all(isinstance(side, (Text, DeviceName)) or _is_name(side) for side in sides):
        return None
    if any(isinstance(side, DeviceName) or _is_cpu(side) for side in sides):
        known = next((side for side in sides if isinstance(side, DeviceName)), None)
        return known or DeviceName(chosen())
    return None


def _either(left: DeviceValue, right: DeviceValue) -> Value:
    return Lost() if _is_shared(left) or _is_shared(right) else DeviceValue(chosen())


def _is_shared(value: Value) -> bool:
    """Check for the device of a tensor or a module without further known facts."""
    return isinstance(value, DeviceValue) and value.device.kind is DeviceKind.SHARED


def _is_name(value: Value) -> bool:
    return isinstance(value, Constant) and isinstance(value.value, str) and device_of(value) is not None


def _is_cpu(value: Value) -> bool:
    return isinstance(value, Constant) and value.value == "cpu"


@hooks.enter_context
def _enter(ev: Evaluator, value: Value) -> hooks.Exit | None:
    if not isinstance(value, DeviceValue):
        return None
    contexts = ev.state[Placement].contexts
    contexts.append(value.device)

    def leave() -> None:
        contexts.pop()

    return leave


@hooks.bind_entry_point
def _place_inputs(ev: Evaluator, frame: Frame) -> None:
    """Put the inputs of a module's `forward` on the device of its parameters."""
    if is_forward(ev, frame.function, frame.receiver):
        for value in frame.scope.names.values():
            tensor = as_tensor(value)
            if tensor is not None:
                tensor.device = OF_MODULE


@hooks.set_attribute
def _keep_apart(ev: Evaluator, owner: Value, name: str, value: Value, node: cst.CSTNode) -> None:
    """Forget the device of a tensor computed from a parameter in `__init__`.

    It is not registered, so that a move of the module leaves it where it is.
    """
    method = method_of_module(ev)
    if method is None or method.name.value != "__init__" or not isinstance(value, TensorValue):
        return
    if not value.own and is_same_device(value.device, OF_MODULE):
        ev.journal.write(value, "device", None)


@hooks.open_branch
def _is_switch(ev: Evaluator, node: cst.If) -> bool:
    """Check for a constant of a file, `USE_GPU = False`, that switches all moves to a GPU."""
    name = node.test.value if isinstance(node.test, cst.Name) else ""
    if not name or (name in ev.frame.scope.names and ev.frame.function is not None):
        return False
    return all(_is_move(part) for part in node.body.body)


def _is_move(statement: cst.CSTNode) -> bool:
    """Whether a statement moves a value, or names the device of moves."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    return any(
        isinstance(part, cst.Attribute) and part.attr.value in ("to", "cuda", "device")
        for part in nodes(statement)
    )


@dataclass(frozen=True, eq=False, slots=True)
class MoveOfNonTensor(Event):
    """Call of `value.to(device)` on a list, a number, a string or another immovable value."""

    is_of_values: ClassVar[bool] = True

    value: Value
    key: object = field(default=None)
    batch: DictValue | None = None
