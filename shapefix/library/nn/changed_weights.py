"""Weights changed without a method of their module: in loops over parameters, through `.data`, elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import field

import libcst as cst

from shapefix.domains.checkpoints import LoadedKeys
from shapefix.domains.devices import ModuleDevice
from shapefix.interpreter import hooks
from shapefix.interpreter.alternatives import MOST, united
from shapefix.interpreter.calls import Arguments, Call, before_call, call_value
from shapefix.interpreter.containers import ListValue, TupleValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.joins import PATHS, join_values
from shapefix.interpreter.stability import ALL_OLD, is_stable
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.interpreter.truth import is_none
from shapefix.interpreter.values import (
    InstanceValue,
    LibraryObject,
    Lost,
    ModulePart,
    OneOf,
    OneOfItems,
    Parameter,
    ParameterAttribute,
    Unknown,
    Value,
    facts_of,
)
from shapefix.library.nn.dtypes import WeightDtype, convert_tensors
from shapefix.library.nn.module import MODULE, is_own_module, modules_in
from shapefix.library.nn.saved_states import note_loaded
from shapefix.library.nn.training import Trained
from shapefix.library.registry import derives, lookup_method, method
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.bounds import same
from shapefix.tensors.layout import Layout

_CONVERTING = ("torch.ao.", "torch.quantization.", "torch.distributed.")
"""Packages of torch that convert and move modules."""
_MOVES = frozenset(
    {"half", "float", "double", "bfloat16", "type", "to", "cuda", "cpu", "xpu", "to_empty", "_apply"}
)
"""Methods that convert or move a module in place."""
_WEIGHTS = ("weight", "bias", "in_proj_weight", "in_proj_bias")
"""Beginnings of the names of parameters of layers."""


@dataclass(eq=False, slots=True)
class LayerWeights:
    """State of the parameters of layers read by the code."""

    layers: dict[TensorValue, tuple[LibraryObject | InstanceValue, Layout | None]] = field(
        default_factory=dict
    )
    """The layer of each parameter, and the layout that the layer was created with."""


def note_weight(call: Call, weight: Value) -> None:
    """Record the layer of a parameter read by the code."""
    if isinstance(weight, TensorValue) and isinstance(call.receiver, (LibraryObject, InstanceValue)):
        call.ev.state[LayerWeights].layers[weight] = (call.receiver, weight.layout)


def forget_weights(ev: Evaluator, module: InstanceValue | LibraryObject) -> None:
    """Forget the device and the dtype of a module's own parameters and buffers."""
    for fact in (ModuleDevice, WeightDtype):
        if fact in module.facts:
            ev.journal.write(module.facts, fact, None)
    convert_tensors(ev, module, None, whole=True)


@hooks.escape
def invalidate_weights(ev: Evaluator, value: Value) -> None:
    """Forget the devices and dtypes of a module and of all below it after a call of unknown code."""
    if isinstance(value, ModulePart) and not isinstance(value, Parameter):
        for owner in value.modules:
            invalidate_weights(ev, owner)
    if _is_module(value):
        for module in modules_in(value):
            forget_weights(ev, module)


def _is_module(value: Value) -> bool:
    if isinstance(value, LibraryObject):
        return derives(value.kind, MODULE)
    # The facts of an object made on another path are not written yet when paths are joined.
    return ModuleDevice in facts_of(value) or is_own_module(value)


@join_values
def join_modules(left: Value, right: Value, depth: int) -> Value | None:
    """Join two modules to any of them: moving it may move each of them; one stays known beside None."""
    sides = left, right
    if any(isinstance(side, (Lost, Parameter, ParameterAttribute)) for side in sides):
        return None
    if any(map(is_none, sides)) and not any(isinstance(side, ModulePart) for side in sides):
        return None
    modules = frozenset(module for side in (left, right) for module in _modules(side))
    if not modules:
        return None
    choices = united(left, right) if depth == PATHS else None
    if choices is not None and all(map(_is_model, choices)) and any(map(_is_module, choices)):
        return OneOf(choices, modules)
    return _items(left, right, modules)


def _items(left: Value, right: Value, modules: frozenset[Value]) -> ModulePart:
    """Join two layers to one of both, as long as there are few different ones."""
    sides = [side.choices if isinstance(side, OneOfItems) else (side,) for side in (left, right)]
    if all(_is_module(choice) for side in sides for choice in side):
        choices = list(sides[0])
        for choice in sides[1]:
            if len(choices) <= MOST and not any(_is_alike(known, choice) for known in choices):
                choices.append(choice)
        if len(choices) == len(sides[0]) and isinstance(left, OneOfItems):
            return left
        if len(choices) <= MOST:
            return OneOfItems(tuple(choices), modules)
    if type(left) is ModulePart and modules == left.modules:
        return left
    return ModulePart(modules)


def _is_alike(one: Value, other: Value) -> bool:
    """Check for layers of one class with the same settings."""
    return one is other or is_stable(one, other, ALL_OLD)


def _is_model(value: Value) -> bool:
    """Check for one of several models, known or not; a layer of torch may go with other settings."""
    if isinstance(value, LibraryObject):
        return derives(value.kind, MODULE) and not value.kind.startswith("torch.")
    return type(value) is Unknown or _is_module(value)


def _modules(value: Value) -> Collection[Value]:
    if isinstance(value, ModulePart):
        return value.modules
    return (value,) if _is_module(value) else ()


@before_call
def _invalidate_arguments(call: Call) -> None:
    """Forget the weights of modules passed to libraries other than torch: they may move or convert them."""
    if not call.name.startswith(("torch.", "builtins.", "operator.")) or call.name.startswith(_CONVERTING):
        for given in call.arguments.everything:
            invalidate_weights(call.ev, given)


@hooks.read_unknown
def _invalidate_owner(ev: Evaluator, owner: Value, name: str) -> None:
    """Forget the device of a module after an unknown method, such as `parallelize`.

    In a loop over `net.modules()` it is unknown which of them are moved or converted.
    """
    if name in _MOVES and not isinstance(owner, Parameter):
        invalidate_weights(ev, owner)
    elif _is_module(owner):
        for module in modules_in(owner):
            if ModuleDevice in module.facts:
                ev.journal.write(module.facts, ModuleDevice, None)


@hooks.set_attribute
def _set_weight(ev: Evaluator, owner: Value, name: str, value: Value, node: cst.CSTNode) -> None:
    """Apply `p.data = p.data.half()` and `layer.weight = nn.Parameter(…)`."""
    if isinstance(owner, ModulePart):
        if name == "data" or name.startswith(_WEIGHTS):
            for module in owner.modules:
                for each in modules_in(module):
                    forget_weights(ev, each)
                    if name == "weight" and isinstance(each, LibraryObject):
                        # It is not known which of the layers gets it, and of which sizes.
                        ev.journal.write(each.fields, "forward", Unknown("forward"))
    elif isinstance(owner, TensorValue) and name == "data":
        known = ev.state[LayerWeights].layers.get(owner)
        if known is not None:
            _replace(ev, *known, value, _may_differ)
        ev.journal.write(owner, "dtype", value.dtype if isinstance(value, TensorValue) else None)
        # A parameter moves on with its module.
        moves = known is not None or owner.own
        found = value.device if isinstance(value, TensorValue) and not moves else None
        ev.journal.write(owner, "device", found)
    elif isinstance(owner, LibraryObject) and name.startswith(_WEIGHTS) and derives(owner.kind, MODULE):
        # Weights that are tied to others have their sizes, also where the code calls these differently.
        _replace(ev, owner, _layout(ev, owner, name), value, _differ)


def _layout(ev: Evaluator, layer: LibraryObject, name: str) -> Layout | None:
    """Layout of a layer's parameter."""
    read = lookup_method(layer.kind, f"@{name}")
    if name not in layer.fields and read is not None and layer.place is not None:
        read(Call(ev, f"{layer.kind}.{name}", layer.place, Arguments(), layer))
    known = layer.fields.get(name)
    return known.layout if isinstance(known, TensorValue) else None


def _replace(
    ev: Evaluator,
    layer: LibraryObject | InstanceValue,
    before: Layout | None,
    weight: Value,
    changes: Callable[[Layout, Layout], bool],
) -> None:
    """Replace a parameter of a layer; with other sizes, the layer's result is unknown."""
    forget_weights(ev, layer)
    if not (isinstance(weight, TensorValue) and requires_grad(weight)) and Trained in layer.facts:
        ev.journal.write(layer.facts, Trained, None)
    after = weight.layout if isinstance(weight, TensorValue) else None
    if before is not None and after is not None and changes(before, after):
        ev.journal.write(layer.fields, "forward", Unknown("forward"))


def _differ(one: Layout, two: Layout) -> bool:
    pairs = zip(one.sizes, two.sizes, strict=False)
    return one.rank != two.rank or any(same(left, right) is False for left, right in pairs)


def _may_differ(one: Layout, two: Layout) -> bool:
    pairs = zip(one.sizes, two.sizes, strict=False)
    return one.rank != two.rank or any(same(left, right) is not True for left, right in pairs)


@method(MODULE, "apply")
def apply(call: Call) -> Value:
    """Call a function with the module and every module below it."""
    function = call.value(0, "fn")
    if function is not None:
        call_value(call.ev, function, Arguments([_part(call)]), call.place.node)
    return call.receiver or Unknown()


def _part(call: Call) -> Value:
    """Any module below the receiver of the call."""
    owner = call.receiver
    return ModulePart(frozenset({owner})) if isinstance(owner, (InstanceValue, LibraryObject)) else Unknown()


@method(MODULE, "modules", "children", "buffers")
def several(call: Call) -> Value:
    return ListValue(None, _part(call))


@method(MODULE, "named_modules", "named_children", "named_buffers")
def named(call: Call) -> Value:
    return ListValue(None, TupleValue((Unknown("name"), _part(call))))


@method(MODULE, "load_state_dict")
def load_state_dict(call: Call) -> Value:
    """Copy values into the parameters; with assign=True they become the parameters, with their dtypes."""
    note_loaded(call)
    if call.constant(2, "assign", False) is not False and call.receiver is not None:
        invalidate_weights(call.ev, call.receiver)
    return LoadedKeys(call.place)
