"""torch.nn.Module: methods inherited by every layer and every model of a project."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.domains.checkpoints import Checkpoints
from shapefix.domains.devices import OF_MODULE, ModuleDevice, named_device, placed
from shapefix.domains.gradients import Gradients, require_grad
from shapefix.domains.modes import EvaluationRecorded
from shapefix.domains.registration import AssignedBeforeInit
from shapefix.domains.training import surroundings
from shapefix.domains.try_blocks import StepKind, note_step
from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Arguments, Call, call_method, call_value
from shapefix.interpreter.classes import is_closed, is_made_by_init, member, outside_bases
from shapefix.interpreter.containers import DictValue, ListValue, elements
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.joins import join_values
from shapefix.interpreter.modules import nodes
from shapefix.interpreter.refused_calls import note_refused, refuses_method, report_refused
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue, requires_grad
from shapefix.interpreter.values import (
    FALSE,
    NONE,
    TRUE,
    Constant,
    InstanceValue,
    LibraryObject,
    OneOf,
    Reference,
    Unknown,
    Value,
    present,
)
from shapefix.library.nn import dtypes, parameter_devices
from shapefix.library.nn.training import set_trained
from shapefix.library.ops.devices import destination, sent
from shapefix.library.registry import declare, derives, function, lookup_method, method
from shapefix.library.required_versions import is_at_least
from shapefix.library.tensors import alias_of, dtype_of, is_no_dtype
from shapefix.library.transformers.model_calls import note_call
from shapefix.tensors.layout import Layout
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size

MODULE = "torch.nn.Module"
WEIGHT_IS_CHANNELS_LAST = "weight_is_channels_last"
"""Field of a convolution for its weight's memory format."""

declare(MODULE, "builtins.object")
declare("torch.nn.modules.Module", MODULE)
declare("torch.nn.modules.module.Module", MODULE)


@method(MODULE, "__call__")
def call_module(call: Call) -> Value:
    """Call a module by its forward: the project's own, or the library layer's."""
    made = _forwarded(call)
    if call.ev.state[Gradients].recording and call.receiver is not None:
        _note_recorded(call, call.receiver, made)
    return made


_WITH_NO_GRAD = "0.4"
"""The first torch with `torch.no_grad`; before, inputs had `volatile=True`."""


def _note_recorded(call: Call, module: Value, made: Value) -> None:
    """Report a call in a loop, outside of any forward, with graphs in its results."""
    ev = call.ev
    if any(isinstance(node, cst.FunctionDef) and node.name.value == "forward" for node in ev.running):
        return
    loops = surroundings(ev)
    parts = made.fields.values() if isinstance(made, LibraryObject) else elements(made) or (made,)
    results = tuple(part for part in parts if isinstance(part, TensorValue) and requires_grad(part))
    if loops and results and is_at_least(ev, _WITH_NO_GRAD, "torch"):
        ev.emit(EvaluationRecorded(call.place, ev.calls, loops, ev.unfollowed, module, results))


def _forwarded(call: Call) -> Value:
    receiver = call.receiver
    note_call(call, receiver)
    if isinstance(receiver, InstanceValue):
        given = call.arguments
        if not given.open and refuses_method(receiver, "forward", given.positional, given.keywords):
            note_refused(call.ev, call.place.node, receiver)
            if not given.keywords:
                report_refused(call.ev, call.place.node, receiver, "forward", len(given.positional))
            return Unknown()
        return call_method(call.ev, receiver, "forward", call.arguments, call.place.node)
    if isinstance(receiver, LibraryObject) and "forward" not in receiver.fields:
        forward = lookup_method(receiver.kind, "forward")
        if forward is not None:
            return forward(call)
    # If the result is a tensor, its layout is unknown.
    origin = LayoutStep(call.place, Op.MODULE_CALL, None, None, call.ev.function)
    return Unknown(tensor=TensorValue(origin=origin, certain=False))


@method(MODULE, "share_memory")
def itself(call: Call) -> Value:
    return call.receiver or Unknown()


@method(MODULE, "cuda", "cpu", "xpu", "to_empty")
def moved(call: Call) -> Value:
    """Move the parameters to another device; return the module itself."""
    receiver = call.receiver or Unknown()
    name = call.name.rpartition(".")[2]
    is_plain = not call.arguments.everything and not call.arguments.open and name != "to_empty"
    found = placed(call.ev, named_device(name), call.place) if is_plain else destination(call)
    parameter_devices.send(call, list(modules_in(receiver)), found)
    return receiver


@method(MODULE, "requires_grad_")
def set_requires_grad(call: Call) -> Value:
    """Freeze or unfreeze the parameters of a module and of those below it; return the module itself."""
    receiver = call.receiver or Unknown()
    asked = call.constant(0, "requires_grad", True)
    for module in modules_in(receiver):
        set_trained(call, module, asked if isinstance(asked, bool) else None)
        for tensor in own_leaves(call.ev, module):
            require_grad(call.ev, tensor, asked if isinstance(asked, bool) else None)
    return receiver


def own_leaves(ev: Evaluator, module: InstanceValue | LibraryObject) -> Iterator[TensorValue]:
    """Parameters of the module itself, as far as the code created or read them."""
    held = module.fields.get("_modules") if isinstance(module, LibraryObject) else None
    items = held.fields.values() if isinstance(held, DictValue) else elements(held) or ()
    for tensor in (*module.fields.values(), *items):
        if isinstance(tensor, TensorValue) and tensor in ev.state[Gradients].leaves:
            if tensor.own or isinstance(module, LibraryObject):
                yield tensor


_CASTS = {"half": "float16", "float": "float32", "double": "float64", "bfloat16": "bfloat16"}


@method(MODULE, *_CASTS, "type")
def cast(call: Call) -> Value:
    """Convert the weights to another dtype; return the module itself."""
    name = call.name.rpartition(".")[2]
    receiver = call.receiver or Unknown()
    dtype = _CASTS.get(name) or dtype_of(call.value(0, "dst_type"))
    convert_weights(call, receiver, dtype, whole=name == "type")
    if dtype is None:
        # `torch.cuda.HalfTensor` names a device, too.
        parameter_devices.send(call, list(modules_in(receiver)), None)
    return receiver


def convert_weights(call: Call, receiver: Value, dtype: str | None, whole: bool = False) -> None:
    """Record that all weights of a module have this dtype from now on; None for an unknown one.

    Its floating buffers and bare parameters are converted, too, and all others if whole is True.
    """
    for module in modules_in(receiver):
        if dtypes.WeightDtype in module.facts:
            call.ev.journal.write(module.facts, dtypes.WeightDtype, dtypes.converted(call, dtype))
        dtypes.convert_tensors(call.ev, module, dtype, whole)


@method(MODULE, "__init__")
def initialize(call: Call) -> Value:
    note_step(call.ev, StepKind.MADE, call.place.node)
    if isinstance(call.receiver, InstanceValue):
        call.ev.journal.write(call.receiver.facts, ModuleDevice, parameter_devices.made_where(call, {}))
    return NONE


@hooks.set_attribute
def _refuse_before_init(ev: Evaluator, owner: Value, name: str, value: Value, node: cst.CSTNode) -> None:
    """End a constructor with a module assigned before any call of `Module.__init__`: torch raises."""
    function = ev.frame.function
    if not isinstance(owner, InstanceValue) or not isinstance(function, cst.FunctionDef):
        return
    if function.name.value != "__init__" or owner is not ev.frame.receiver or ModuleDevice in owner.facts:
        return
    bases = set(outside_bases(owner.cls))
    is_plain = MODULE in bases <= {MODULE, "builtins.object"} and is_closed(owner.cls)
    is_plain = is_plain and is_made_by_init(owner.cls) and member(owner.cls, "__setattr__") is None
    is_module = isinstance(value, LibraryObject) and derives(value.kind, MODULE)
    if is_plain and is_module and not ev.frame.module.once(function, _calls_init):
        if not ev.expects("AttributeError"):
            ev.emit(AssignedBeforeInit(ev.place(node), ev.calls, owner, function))
        ev.refused = True
        ev.refusals += 1


def _calls_init(function: cst.CSTNode) -> bool:
    """Check for any mention of another `__init__` in a constructor."""
    body = function.body if isinstance(function, cst.FunctionDef) else function
    return any(isinstance(node, cst.Name) and node.value in ("super", "__init__") for node in nodes(body))


@method(MODULE, "compile")
def returns_none(call: Call) -> Value:
    return NONE


@method(MODULE, "register_forward_hook", "register_forward_pre_hook")
def hooked(call: Call) -> Value:
    """Forget the behavior of a module with a hook: hooks may change inputs and outputs."""
    if isinstance(call.receiver, (InstanceValue, LibraryObject)):
        call.ev.journal.write(call.receiver.fields, "forward", Unknown("forward"))
    return Unknown("handle")


@method(MODULE, "to")
def to(call: Call) -> Value:
    """Convert a module and return it; a memory format applies to the convolutions' weights."""
    receiver = call.receiver or Unknown()
    wanted = call.arguments.keywords.get("memory_format")
    if wanted is not None:
        named = wanted.name if isinstance(wanted, Reference) else None
        is_last = named in ("torch.channels_last", "torch.channels_last_3d")
        for module in modules_in(receiver):
            if WEIGHT_IS_CHANNELS_LAST in module.fields:
                setting = Unknown() if named is None else TRUE if is_last else FALSE
                call.ev.journal.write(module.fields, WEIGHT_IS_CHANNELS_LAST, setting)
    given = [*call.arguments.positional, *(call.arguments.keywords.get(k, NONE) for k in ("dtype", "other"))]
    only_dtypes = all(dtype_of(value) is not None or value is NONE for value in given)
    if call.arguments.open or not only_dtypes or "device" in call.arguments.keywords:
        parameter_devices.send(call, list(modules_in(receiver)), destination(call))
    dtypes_named = [dtype for dtype in map(dtype_of, given) if dtype is not None]
    if dtypes_named or call.arguments.open or not all(is_no_dtype(value) for value in given):
        convert_weights(call, receiver, dtypes_named[0] if dtypes_named else None)
    return receiver


def is_own_module(value: Value) -> bool:
    """Check for an object of a project class derived from `nn.Module`."""
    return isinstance(value, InstanceValue) and any(
        derives(base, MODULE) for base in outside_bases(value.cls)
    )


def modules_in(root: Value) -> Iterator[InstanceValue | LibraryObject]:
    """The module and all known modules below it."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        value = present(waiting.pop())
        if isinstance(value, OneOf):
            waiting.extend(value.choices)
        if id(value) in seen or not isinstance(value, (InstanceValue, LibraryObject)):
            continue
        seen.add(id(value))
        yield value
        for held in value.fields.values():
            field = present(held) if isinstance(held, Value) else held
            if isinstance(field, ListValue):
                waiting.extend(field.items or ())
                if field.element is not None:
                    waiting.append(field.element)
            elif isinstance(field, DictValue):
                waiting.extend(field.fields.values())
            elif isinstance(field, Value):
                waiting.append(field)


@method(MODULE, "register_buffer", "register_parameter", "add_module", "register_module")
def register(call: Call) -> Value:
    """Set the named attribute."""
    name = call.value(0, "name")
    value = next(
        (v for v in (call.value(1, key) for key in ("tensor", "param", "module")) if v is not None), None
    )
    owner = call.receiver
    if isinstance(owner, (InstanceValue, LibraryObject)) and isinstance(name, Constant):
        kept = value or Unknown(f"self.{name.value}")
        if isinstance(kept, TensorValue):
            # It moves together with the module.
            kept = alias_of(kept)
            kept.device = OF_MODULE
        call.ev.journal.write(owner.fields, name.value, kept)
        if not call.name.endswith("module"):
            dtypes.note_registered(call, owner, name.value)
    return NONE


@method(
    MODULE,
    "get_submodule",
    "get_parameter",
    "register_full_backward_hook",
    "extra_repr",
)
def unknown(call: Call) -> Value:
    return Unknown(call.name.rpartition(".")[2])


@function("torch.compile")
def compiled(call: Call) -> Value:
    """Return the module itself, and record the call: the names in its state have a prefix."""
    made = wrapped(call)
    if isinstance(made, (InstanceValue, LibraryObject)):
        call.ev.state[Checkpoints].compiled.add(call.place.node)
    return made


@function(
    "torch.jit.script",
    "torch.nn.utils.weight_norm",
    "torch.nn.utils.spectral_norm",
    "torch.nn.utils.remove_weight_norm",
    "torch.nn.utils.parametrizations.weight_norm",
    "torch.nn.utils.parametrizations.spectral_norm",
    "torch.nn.utils.parametrizations.orthogonal",
)
def wrapped(call: Call) -> Value:
    """Return the wrapped value itself: its parameters and results stay the same."""
    given = call.value(0, "model") or call.value(0, "module") or call.value(0, "obj")
    return given or Unknown()


DISTRIBUTED = "torch.nn.parallel.DistributedDataParallel"
declare(DISTRIBUTED, MODULE)


@function(DISTRIBUTED, "torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
def distributed(call: Call) -> Value:
    module = call.value(0, "module") or Unknown("module")
    made = LibraryObject(DISTRIBUTED, {"module": module}, call.place, {"module": module})
    devices = elements(call.value(1, "device_ids"))
    if devices is not None and len(devices) > 1:
        made.fields[_SPLIT] = TRUE
    return made


_SPLIT = "splits batches"
"""Field of a wrapper with several GPUs in one process: each gets a part of the samples."""


@join_values
def join_with_wrapper(left: Value, right: Value, depth: int = 0) -> Value | None:
    """Join a module and its wrapper for several GPUs: a run on one GPU has the module itself."""
    modules = [_wrapped_module(side) for side in (left, right)]
    if modules == [None, None]:
        return None
    if modules[0] is modules[1]:
        # Two wrappers of one module.
        return left
    for module, wrapped in ((left, modules[1]), (right, modules[0])):
        if wrapped is module:
            return module
    return None


def _wrapped_module(value: Value) -> Value | None:
    if isinstance(value, LibraryObject) and value.kind == DISTRIBUTED:
        return value.fields.get("module")
    return None


@hooks.absent_attribute
def unwrapped(ev: Evaluator, owner: InstanceValue, name: str) -> Value | None:
    """Return the module itself for `model.module`: without such an attribute, it is in a wrapper there."""
    return owner if name == "module" and is_own_module(owner) else None


def _part_of(value: Value, count: Size | None) -> Value:
    """Return a sent tensor with this number of samples; any other value, or all samples for None."""
    if (
        count is not None
        and isinstance(value, TensorValue)
        and value.layout is not None
        and value.layout.rank
    ):
        value.layout = Layout((count, *value.layout.sizes[1:]), value.layout.strides)
    return value


@method(DISTRIBUTED, "forward")
def forward_of_wrapped(call: Call) -> Value:
    """Call the wrapped module with the same arguments, sent to its device before."""
    module = call.receiver.fields.get("module") if isinstance(call.receiver, LibraryObject) else None
    if not isinstance(module, (InstanceValue, LibraryObject, OneOf)):
        return Unknown()
    given = call.arguments
    is_split = isinstance(call.receiver, LibraryObject) and _SPLIT in call.receiver.fields
    part = Size.symbol("samples of one GPU") if is_split else None
    sent_on = Arguments(
        [_part_of(sent(value, OF_MODULE), part) for value in given.positional],
        {name: _part_of(sent(value, OF_MODULE), part) for name, value in given.keywords.items()},
        given.open,
        given.starred,
        given.unpacked,
    )
    if isinstance(module, OneOf):
        return call_value(call.ev, module, sent_on, call.place.node)
    return call_module(Call(call.ev, f"{MODULE}.__call__", call.place, sent_on, module))
