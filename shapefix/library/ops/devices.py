"""Devices: results are on the device of the operands; torch rejects operands on two devices.

A tensor of rank 0 on the CPU may join any other one in elementwise arithmetic, and indices on the CPU may
index a tensor elsewhere: tests check this with torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from shapefix.domains.devices import (
    ASKED_CPU,
    FORWARD,
    DeviceMismatch,
    DeviceValue,
    chosen,
    device_of,
    is_forward,
    placed,
    shared,
)
from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Call, after_call
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue, elements
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Operand
from shapefix.interpreter.names import peek
from shapefix.interpreter.tensor_values import Device, DeviceKind, TensorValue, is_same_device
from shapefix.interpreter.values import Constant, Reference, Unknown, Value
from shapefix.library.registry import function, tensor_method
from shapefix.library.rejections import by_position, may_not_reach, operands_in
from shapefix.library.tensors import alias_of
from shapefix.tensors.ops import BINARY_NAMES

_SPACES = ("torch.Tensor.", "torch.nn.functional.", "operator.")
_ELSEWHERE = frozenset(
    {
        "to",
        "cuda",
        "cpu",
        "xpu",
        "type",
        "type_as",
        "tensor",
        "as_tensor",
        "asarray",
        "from_numpy",
        "load",
        "device",
        "zeros",
        "ones",
        "empty",
        "full",
        "rand",
        "randn",
        "randint",
        "randperm",
        "arange",
        "range",
        "linspace",
        "logspace",
        "eye",
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
        "rand_like",
        "randn_like",
        "randint_like",
        "new_zeros",
        "new_ones",
        "new_empty",
        "new_full",
        "new_tensor",
        "data",
        "numpy",
        "Tensor",
        "FloatTensor",
        "LongTensor",
        "IntTensor",
        "BoolTensor",
        "DoubleTensor",
        "HalfTensor",
        "ByteTensor",
        "Parameter",
        "Buffer",
    }
)
"""Results of these are on the stated or requested device."""
_OF_FIRST = frozenset(
    {"getitem", "expand_as", "view_as", "reshape_as", "copy_", "setitem", "index_put", "index_put_", "set_"}
)
"""Results of these are on the device of the first operand; the others may be elsewhere."""
_TOGETHER = frozenset(BINARY_NAMES) | {
    "addmm",
    "and",
    "baddbmm",
    "bmm",
    "cat",
    "cdist",
    "concat",
    "concatenate",
    "dot",
    "dstack",
    "einsum",
    "floordiv",
    "gather",
    "ger",
    "hstack",
    "iadd",
    "index_add",
    "index_select",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "mm",
    "mod",
    "mv",
    "or",
    "outer",
    "scatter",
    "scatter_add",
    "stack",
    "take_along_dim",
    "truediv",
    "vstack",
    "where",
    "xor",
}
"""Operations with operands that must be on one device."""


_ANY_DEVICE = frozenset({"CTCLoss", "ctc_loss"})
"""Losses with lengths and targets on any device."""


@function("torch.device")
def device(call: Call) -> Value:
    if _is_of_environment(call):
        return Unknown()
    named = device_of(call.value(0, "type") or call.value(0, "device"))
    return DeviceValue(named if named is not None and named.kind is not DeviceKind.SHARED else chosen())


_ENVIRONMENT = frozenset({"os.environ", "os.environ.get", "os.getenv"})


def _is_of_environment(call: Call) -> bool:
    """Whether the name is read from a variable of the environment: the program may set it to the CPU."""
    node = call.place.node
    given = node.args[0].value if isinstance(node, cst.Call) and node.args else None
    while isinstance(given, (cst.Subscript, cst.Call)):
        given = given.value if isinstance(given, cst.Subscript) else given.func
    source = None if given is None else peek(call.ev, given)
    return isinstance(source, Reference) and source.name in _ENVIRONMENT


@tensor_method("@device")
def own_device(call: Call, tensor: TensorValue) -> Value:
    """`x.device`: the same each time, even if unknown."""
    if tensor.device is None:
        tensor.device = shared()
    return DeviceValue(tensor.device)


@after_call
def note_device(call: Call, made: Value) -> None:
    """Record the device of a torch function's result; report rejected operands."""
    name = call.name
    if not name.startswith("torch.") and not name.startswith("operator."):
        return
    last = name.rpartition(".")[2]
    if last in _ELSEWHERE:
        return
    values = by_position(call)
    operands = operands_in(values, _MOST_OF_LIST)
    if not any(operand.tensor.device is not None for operand in operands):
        return
    if last in _OF_FIRST:
        found = operands[0].tensor.device
    else:
        checked = last.removesuffix("_") in _TOGETHER or name.startswith("torch.nn.functional.")
        apart = meet(call, values) if checked else None
        others = any(_may_be_tensor(value) for value in values.values()) or call.arguments.open
        found = apart or (None if others else joint([operand.tensor for operand in operands]))
    results = (made.element,) if isinstance(made, ListValue) and made.element else elements(made) or (made,)
    for part in results:
        if isinstance(part, TensorValue) and not any(part is operand.tensor for operand in operands):
            part.device = found


def _may_be_tensor(value: Value) -> bool:
    return isinstance(value, Unknown) and value.tensor is None


def joint(tensors: Sequence[TensorValue], weights: Device | None = None) -> Device | None:
    """Device of a value computed from tensors, and from weights on a device; None if unknown."""
    counted = [tensor for tensor in tensors if not is_number_on_cpu(tensor)] or list(tensors)
    devices = [tensor.device for tensor in counted]
    if weights is not None:
        devices.append(weights)
    # What forward creates follows the state of the module, once that moves.
    first = next((each for each in devices if each is not None and not _is_of_forward(each)), None)
    first = first or (devices[0] if devices else None)
    return first if all(is_same_device(first, each) for each in devices) else None


def is_number_on_cpu(tensor: TensorValue) -> bool:
    """Check for a tensor of rank 0 on the CPU, valid with tensors of any device."""
    on_cpu = tensor.device is not None and tensor.device.kind is DeviceKind.CPU
    return on_cpu and tensor.layout is not None and tensor.layout.rank == 0


def meet(
    call: Call,
    values: Mapping[str, Value],
    *,
    function: str = "",
    layer: Value | None = None,
    weights: Device | None = None,
) -> Device | None:
    """Report values, by parameter name, on incompatible devices for torch.

    weights is the device of the layer's weights. Returns the intended device after a report, else None.
    """
    if (function or call.name).rpartition(".")[2] in _ANY_DEVICE:
        return None
    operands = operands_in(values, _MOST_OF_LIST)
    local = [number for number, operand in enumerate(operands) if _is_on_cpu(operand)][:_MOST_LOCAL]
    ev = call.ev
    forward = any(is_forward(ev, frame.function, frame.receiver) for frame in ev.frames) if local else False
    meant: Device | None = None
    fitting: list[Device] = []
    for here in (*local, *([None] if weights is not None and weights.kind is DeviceKind.CPU else ())):
        cpu = weights if here is None else operands[here].tensor.device
        if cpu is None or (meant is not None and (here is None or not _is_of_module(cpu))):
            # Each tensor that a module creates without a device is an error; for others one report is enough.
            continue
        if any(cpu is each for each in fitting):
            continue
        for there in (*range(len(operands)), None):
            if there == here:
                continue
            other = weights if there is None else operands[there].tensor.device
            if other is None or not _is_elsewhere(cpu, other, forward and here is not None):
                continue
            if there is not None and not _is_tensor(operands[there].tensor):
                continue
            if asks_for_device(ev):
                return None
            ev.emit(
                DeviceMismatch(
                    call.place,
                    ev.calls,
                    function or call.name,
                    layer,
                    tuple(values),
                    tuple(operands),
                    ev.function,
                    any(may_not_reach(ev, operand.tensor) for operand in operands),
                    here,
                    there,
                    cpu,
                    other,
                    _names_of_tensors(ev),
                )
            )
            meant = meant or other
            break
        else:
            fitting.append(cpu)
    return meant


def _is_of_module(cpu: Device) -> bool:
    """Check for a value on the CPU because the code of a module created it without a device."""
    return cpu.by_default and cpu.within is not None


def _names_of_tensors(ev: Evaluator) -> dict[cst.CSTNode, frozenset[str]]:
    """Names certain to hold tensors, by the function being run."""
    found: dict[cst.CSTNode, frozenset[str]] = {}
    for frame in ev.frames:
        if frame.function is not None:
            names = frame.scope.names
            found[frame.function] = frozenset(name for name in names if _is_certain(names[name]))
    return found


def _is_certain(value: Value) -> bool:
    tensor = value.tensor if isinstance(value, Unknown) else value
    return isinstance(tensor, TensorValue) and tensor.certain


_MOST_LOCAL = 16
"""Maximum number of operands that are compared with all others: a list may hold thousands."""
_MOST_OF_LIST = 200
"""Maximum number of operands taken from one list: a call in a loop may be given a list that grows."""
_WORDS = ("cuda", "gpu", "device", "cpu", "mps")


def asks_for_device(ev: Evaluator) -> bool:
    """Check for an open branch with a test of the device: it may not be taken on a GPU."""
    return any(
        word in frame.module.code(test).lower()
        for frame in ev.frames
        for test in frame.tests
        for word in _WORDS
    )


def _is_on_cpu(operand: Operand) -> bool:
    """Check that an operand is certainly on the CPU, and not a tensor of rank 0."""
    tensor = operand.tensor
    found = tensor.device
    if found is None or found.kind is not DeviceKind.CPU or not tensor.certain:
        return False
    if tensor.layout is not None:
        return tensor.layout.rank > 0
    return found.by_default and tensor.origin is not None and tensor.origin.place is found.place


def _is_elsewhere(cpu: Device, other: Device, forward: bool) -> bool:
    """Check that a value on the CPU may be on another device than other; forward is True in a forward."""
    if other.may_be_gpu:
        return True
    if not forward or not cpu.by_default or cpu.within is None:
        return False
    if other.symbol == ASKED_CPU.symbol:
        return False
    if other.by_default and _is_setting(other):
        return False
    # Created in a module and combined with its inputs or parameters, which may be moved to a GPU.
    if _is_of_forward(cpu):
        stays = other.kind is DeviceKind.CPU and other.by_default and other.within is not None
        return other.kind is DeviceKind.SHARED or not (stays or _is_of_forward(other))
    return other.kind is DeviceKind.SHARED or other.within is None


def _is_setting(found: Device) -> bool:
    """Check for a tensor made in `__init__` of an object without items, such as a configuration.

    No caller of a module moves it as it moves the module's inputs, which may be items of a dataset.
    """
    place = found.place
    around = place.module.path_to(place.node) if place is not None else []
    functions = [each.name.value for each in around if isinstance(each, cst.FunctionDef)]
    owner = next((each for each in reversed(around) if isinstance(each, cst.ClassDef)), None)
    if owner is None or functions != ["__init__"]:
        return False
    return not any(
        isinstance(each, cst.FunctionDef) and each.name.value in _ITEMS for each in owner.body.body
    )


_ITEMS = frozenset({"__getitem__", "__iter__", *FORWARD})


def _is_of_forward(found: Device) -> bool:
    """Check for a value on the CPU because of the forward of a module, or of its source."""
    return found.within is not None and found.within.name.value in FORWARD


def _is_tensor(tensor: TensorValue) -> bool:
    """Check for a tensor, not a number: it has sizes, or torch computed it."""
    is_shaped = (
        tensor.layout is not None or tensor.known_size(0) is not None or tensor.known_size(-1) is not None
    )
    return is_shaped or tensor.certain or tensor.origin is not None


def sent(value: Value, found: Device | None, depth: int = 0) -> Value:
    """The same batch with its tensors on another device, as sent by a training loop; None: any device."""
    if depth > 4:
        return value
    if isinstance(value, TensorValue):
        again = alias_of(value)
        again.device = found
        return again
    if isinstance(value, DictValue):
        fields = {key: sent(part, found, depth + 1) for key, part in value.fields.items()}
        return DictValue(fields, value.closed, value.kind, value.absent, value.written)
    if isinstance(value, TupleValue) and type(value) is TupleValue:
        return TupleValue(tuple(sent(part, found, depth + 1) for part in value.items), value.names)
    if type(value) is ListValue and value.items is not None:
        return ListValue(tuple(sent(part, found, depth + 1) for part in value.items))
    return value


@hooks.escape
def invalidate_batch(ev: Evaluator, batch: Value) -> None:
    """Forget the devices of the tensors in a batch passed to unknown code."""
    if not isinstance(batch, DictValue):
        return
    for key, value in list(batch.fields.items()):
        if isinstance(value, TensorValue) and value.device is not None:
            ev.journal.write(batch.fields, key, sent(value, None))


def destination(call: Call) -> Device | None:
    """Target device of `.to(…)`; None if unknown, or if only a dtype is named."""
    given = [*call.arguments.positional, *call.arguments.keywords.values()]
    for value in given:
        if isinstance(value, TensorValue):
            return placed(call.ev, value.device, call.place)
        if isinstance(value, Constant) and isinstance(value.value, bool):
            continue
        found = device_of(value)
        if found is not None:
            return placed(call.ev, found, call.place)
    return None
