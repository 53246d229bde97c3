"""Conversions of dtype, device and memory format: a copy, or the tensor itself if nothing changes."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.devices import device_of, named_device, placed
from shapefix.interpreter.calls import Call, call_library
from shapefix.interpreter.joins import join_values
from shapefix.interpreter.tensor_values import Device, DeviceKind, TensorValue, is_same_device, tensor_row
from shapefix.interpreter.values import FALSE, NONE, TEXT, Constant, LibraryObject, Reference, Value
from shapefix.library.registry import declare, method, tensor_method
from shapefix.library.signatures import arguments_of
from shapefix.library.tensors import (
    alias_of,
    as_result,
    contiguous_result,
    copied,
    copied_or_same,
    dtype_of,
    is_no_dtype,
)
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.layout import channels_last, unknown_strides
from shapefix.tensors.ops import Op

_CASTS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
}


@tensor_method(*_CASTS)
def cast(call: Call, tensor: TensorValue) -> Value:
    return converted(call, tensor, _CASTS[call.name.rpartition(".")[2]])


def converted(call: Call, tensor: TensorValue, dtype: str | None) -> TensorValue:
    """Convert the tensor to another dtype; return it unchanged if its dtype is the same."""
    if dtype is not None and tensor.dtype == dtype:
        return tensor
    if dtype is not None and tensor.dtype is not None:
        result = copied(call, tensor, Op.TO_DTYPE, dtype)
        if result.origin is not None:
            result.origin.detail = f" to {dtype}"
    else:
        same_if = f"`{_subject(call)}` is already {dtype}" if dtype is not None else ""
        result = copied_or_same(call, tensor, Op.TO_DTYPE, dtype, same_if)
    result.device, result.row = tensor.device, tensor_row(tensor)
    return result


_LEGACY = {
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
}


@tensor_method("type")
def typed(call: Call, tensor: TensorValue) -> Value:
    """`x.type(torch.float16)`, `x.type(torch.cuda.FloatTensor)`, `x.type("torch.FloatTensor")`."""
    given = arguments_of(call).value("dtype")
    if isinstance(given, Constant) and given.value is None:
        return TEXT
    name = given.name if isinstance(given, Reference) else getattr(given, "value", "")
    if isinstance(given, LibraryObject) and given.kind == TENSOR_TYPE:
        made = converted(call, tensor, _LEGACY.get(str(given.fields["name"])))
        made = alias_of(tensor) if made is tensor else made
        made.device = None
        return made
    legacy = name if isinstance(name, str) and name.rpartition(".")[2] in _LEGACY else ""
    dtype = dtype_of(given) or _LEGACY.get(legacy.rpartition(".")[2])
    if dtype_of(given) is not None:
        return converted(call, tensor, dtype)
    device = _of_legacy_type(legacy)
    made = moved_and_converted(call, tensor, _Target(dtype, device, bool(legacy), True, True))
    made = alias_of(tensor) if made is tensor else made
    made.dtype, made.device = dtype, device
    return made


TENSOR_TYPE = "torch.tensortype"
declare(TENSOR_TYPE, "builtins.object")


@join_values
def join_tensor_types(left: Value, right: Value, depth: int = 0) -> Value | None:
    """Join a type and the same on the GPU: `torch.cuda.FloatTensor if cuda else torch.FloatTensor`."""
    names = [_tensor_type(side) for side in (left, right)]
    if names[0] is None or names[0] != names[1]:
        return None
    return LibraryObject(TENSOR_TYPE, fields={"name": names[0]})


def _tensor_type(value: Value) -> str | None:
    """Class name of a legacy tensor type without its device; None for other values."""
    if isinstance(value, LibraryObject) and value.kind == TENSOR_TYPE:
        return str(value.fields["name"])
    module, _, name = value.name.rpartition(".") if isinstance(value, Reference) else ("", "", "")
    return name if name in _LEGACY and module in ("torch", "torch.cuda") else None


@method(TENSOR_TYPE, "__call__")
def create(call: Call) -> Value:
    """Create a tensor on either device."""
    fields = call.receiver.fields if isinstance(call.receiver, LibraryObject) else {}
    made = call_library(call.ev, f"torch.{fields.get('name')}", call.arguments, call.place.node)
    if isinstance(made, TensorValue):
        made.device = None
    return made


def _of_legacy_type(name: str) -> Device | None:
    """Device named by a legacy type: `torch.cuda.FloatTensor`, `torch.FloatTensor`; None for another name."""
    if not name:
        return None
    return named_device("cuda" if name.startswith("torch.cuda.") else "cpu")


@tensor_method("to", "type_as")
def to(call: Call, tensor: TensorValue) -> Value:
    target = _target(call, tensor)
    wanted = call.arguments.keywords.get("memory_format")
    if wanted is None:
        return moved_and_converted(call, tensor, target)
    made = in_memory_format(call, tensor, wanted)
    made.dtype, made.device = target.dtype, target.device
    return made


@dataclass(frozen=True, slots=True)
class _Target:
    """Dtype and device of the result of a conversion.

    known is False if the code may name others, converts whether it may name a dtype, moves a device; copies
    whether the result is a copy even if nothing changes, None if unknown.
    """

    dtype: str | None
    device: Device | None
    known: bool
    converts: bool
    moves: bool
    copies: bool | None = False


def _target(call: Call, tensor: TensorValue) -> _Target:
    """Read the arguments of `.to(…)`; its overloads differ by their kinds, not by their number."""
    dtype, device = tensor.dtype, tensor.device
    known = not call.arguments.open
    converts = moves = call.arguments.open
    named = call.arguments.keywords
    for value in (
        *call.arguments.positional,
        *(named[key] for key in ("dtype", "device", "other") if key in named),
    ):
        if dtype_of(value) is not None:
            dtype, converts = dtype_of(value), True
        elif device_of(value) is not None:
            device, moves = placed(call.ev, device_of(value), call.place), True
        elif isinstance(value, TensorValue):
            dtype, device, converts, moves = value.dtype, value.device, True, True
        elif not (isinstance(value, Constant) and isinstance(value.value, (bool, type(None)))):
            known = False
            device, moves = None, True
            if not is_no_dtype(value):
                dtype, converts = None, True
    return _Target(dtype, device, known, converts, moves, _copies(call))


def _copies(call: Call) -> bool | None:
    """Whether a call of `.to(…)` makes a copy in any case; None if unknown.

    `copy` is the fourth parameter after a device, and the third after a dtype or another tensor.
    """
    positional = call.arguments.positional
    place = 3 if positional and device_of(positional[0]) is not None else 2
    given = call.arguments.keywords.get("copy", positional[place] if len(positional) > place else FALSE)
    return given.value if isinstance(given, Constant) and isinstance(given.value, bool) else None


def moved_and_converted(call: Call, tensor: TensorValue, target: _Target) -> TensorValue:
    """Convert and move the tensor: the result is the tensor itself, a copy, or undecided."""
    dtype, device, known = target.dtype, target.device, target.known
    changes = [
        _differs(tensor.dtype, dtype) if target.converts else False,
        _is_elsewhere(tensor.device, device) if target.moves else False,
    ]
    if known and changes == [False, False] and target.copies is False:
        if tensor.device is None or not tensor.device.by_default:
            return tensor
        # The device is now stated in the code, not the default.
        again = alias_of(tensor)
        again.device = device
        return again
    if True in changes or target.copies:
        result = copied(call, tensor, Op.TO, dtype)
    else:
        same_if = _same_if(call, target, *changes) if known else ""
        result = copied_or_same(call, tensor, Op.TO, dtype, same_if)
    result.dtype, result.device, result.row = dtype, device, tensor_row(tensor)
    return result


def _same_if(call: Call, target: _Target, converts: bool | None, moves: bool | None) -> str:
    """Condition for `.to(…)` to return the tensor itself; empty if that is unlikely.

    converts is whether the dtype changes, moves whether the device does, None if unknown.
    """
    subject, dtype, device = _subject(call), target.dtype, target.device
    parts = [f"`{subject}` is already {dtype}"] if converts is None and dtype is not None else []
    if converts is None and dtype is None:
        return ""
    if moves is None:
        where = _device_code(call)
        if device is None or device.kind is DeviceKind.GPU or not where:
            # Batches come from the CPU.
            return ""
        is_chosen = device.kind is DeviceKind.CHOSEN
        parts.append(f"`{where}` is the CPU" if is_chosen else f"`{subject}` is already on `{where}`")
    return " and ".join(parts)


def _subject(call: Call) -> str:
    """Code of the tensor of a method."""
    node = call.place.node
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return call.place.module.code(node.func.value)
    return "the tensor"


def _device_code(call: Call) -> str:
    """Code of the device of `.to(…)`; empty if the call does not show it."""
    node, positional = call.place.node, call.arguments.positional
    for place, given in enumerate(node.args if isinstance(node, cst.Call) else ()):
        if given.star:
            return ""
        if given.keyword is not None:
            is_device = given.keyword.value == "device"
        else:
            is_device = place < len(positional) and dtype_of(positional[place]) is None
        if is_device:
            return call.place.module.code(given.value)
    return ""


def _differs(one: str | None, two: str | None) -> bool | None:
    return None if one is None or two is None else one != two


def _is_elsewhere(one: Device | None, two: Device | None) -> bool | None:
    if one is None or two is None:
        return None
    if is_same_device(one, two):
        return False
    # "cuda" may be "cuda:0".
    return True if {one.kind, two.kind} == {DeviceKind.CPU, DeviceKind.GPU} else None


@tensor_method("cuda", "cpu", "xpu")
def moved(call: Call, tensor: TensorValue) -> Value:
    name = call.name.rpartition(".")[2]
    given = arguments_of(call).values.get("device", NONE)
    is_stated = not isinstance(given, Constant) or given.value is not None
    device = placed(call.ev, device_of(given) if is_stated else named_device(name), call.place)
    return moved_and_converted(call, tensor, _Target(tensor.dtype, device, True, False, True))


def in_memory_format(call: Call, tensor: TensorValue, wanted: Value | None) -> TensorValue:
    """Convert the tensor to a memory format, such as `torch.channels_last`."""
    name = wanted.name if isinstance(wanted, Reference) else ""
    if tensor.layout is None:
        return as_result(
            call, None, Op.TO, dtype=tensor.dtype, is_contiguous=name == "torch.contiguous_format"
        )
    sizes = tensor.layout.sizes
    if name == "torch.contiguous_format":
        return contiguous_result(call, sizes, Op.CONTIGUOUS, dtype=tensor.dtype, device=tensor.device)
    if name == "torch.preserve_format":
        return copied(call, tensor, Op.TO)
    if name in ("torch.channels_last", "torch.channels_last_3d"):
        layout = channels_last(sizes)
        return as_result(call, layout, Op.CHANNELS_LAST, dtype=tensor.dtype, device=tensor.device)
    return as_result(call, unknown_strides(sizes), Op.TO, dtype=tensor.dtype, device=tensor.device)
