"""SF606: layers in a plain list, and trained tensors, as attributes of a module."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.device_texts import on_a_gpu
from shapefix.checks.support.event_order import is_certain, is_followed, of_kind, within
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.optimized import are_all_known, has_weights
from shapefix.checks.support.registering import assigned_value, wrapped
from shapefix.checks.support.syntax import enclosing_class, holds
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Diagnostic, Evidence, Fix
from shapefix.domains.gradients import depends_on, lineage
from shapefix.domains.modes import ForwardCalled
from shapefix.domains.registration import UnregisteredSet, members, registered_in
from shapefix.domains.training import Backward, OptimizerCreated, OptimizerStepped, Owners
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.modules import Place, called_name, children, dotted_name, nodes, target_names
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import InstanceValue, LibraryObject, Value, as_tensor, facts_of

_BY_HAND = re.compile(r"\.grad\b|\._parameters\b|\._modules\b|__setattr__|\bsetattr\(")
"""Text of code that registers modules, or changes weights, by hand."""
_FROZEN = re.compile(r"requires_grad|\bfrozen\b|\bfreeze", re.IGNORECASE)
_READING = frozenset({"len", "enumerate", "zip", "range", "reversed", "iter", "list", "print"})
"""Functions that register nothing."""
_CONTAINERS: dict[type, str] = {ListValue: "list", DictValue: "dict", TupleValue: "tuple"}
_REGISTERING = frozenset({"add_module", "register_module", "register_parameter", "register_buffer"})


@rule("SF606", on=UnregisteredSet)
def unregistered_parameters(
    event: UnregisteredSet, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    if event.owner.fields.get(event.name) is not event.value or _BY_HAND.search(event.place.module.text):
        return
    if isinstance(event.value, TensorValue):
        yield from _tensor(event, event.value, context, rule)
    else:
        yield from _layers(event, context, rule)


def _layers(event: UnregisteredSet, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    held = list(members(event.value))
    inner = {layer: None for each in held for layer in registered_in(each) or () if has_weights(layer)}
    if not inner or _is_registered_by_hand(event):
        return
    for call in _learning_calls(event.owner, context):
        used = [layer for layer in inner if layer in call.called and isinstance(layer, LibraryObject)]
        given = _given(call, context)
        if not used or given is None or not given.isdisjoint(inner):
            continue
        places = [layer.place for layer in used if layer.place is not None]
        if any(_FROZEN.search(place.module.text) for place in places):
            continue
        yield _finding(event, context, call, "layers", places[0], rule, _listed(event, held))
        return


def _tensor(
    event: UnregisteredSet, tensor: TensorValue, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    if tensor.origin is None or _is_registered_by_hand(event):
        return
    if tensor.sources and not _is_of_own_parameters(event, tensor):
        return
    for call in _learning_calls(event.owner, context):
        result = as_tensor(call.result)
        is_used = result is not None and depends_on(result, tensor)
        if is_used and _given(call, context) is not None:
            edit = wrapped(event, "Parameter")
            fix = rewrites.unsafe_or_advice("make it a parameter of the module", edit)
            condition = on_a_gpu(tensor.device) if tensor.device is not None and tensor.sources else None
            found = _finding(event, context, call, "tensor", tensor.origin.place, rule, iter((fix,)))
            yield replace(found, condition=condition)
            return


def _is_of_own_parameters(event: UnregisteredSet, tensor: TensorValue) -> bool:
    """Whether a tensor is computed from parameters made on the way only: `nn.Parameter(w) * 0.1`.

    A conversion to the device or dtype that a parameter has already returns the parameter itself.
    """
    value, module = assigned_value(event.place), event.place.module
    leaves = [each for each in lineage(tensor) if not each.sources]
    return value is not None and all(
        leaf.own
        and leaf.origin is not None
        and leaf.origin.place.module is module
        and holds(value, leaf.origin.place.node)
        and (leaf.origin is not tensor.origin or _is_moved(value, tensor))
        for leaf in leaves
    )


def _is_moved(value: cst.BaseExpression, tensor: TensorValue) -> bool:
    """Whether a parameter made on the CPU in an expression is moved to a GPU, as far as the code says."""
    made = [node for node in nodes(value) if called_name(node) == "Parameter"]
    inside = [node for call in made if isinstance(call, cst.Call) for arg in call.args for node in nodes(arg)]
    is_placed = any(
        (isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value == "device")
        or called_name(node) in ("to", "cuda")
        for node in inside
    )
    return bool(made) and not is_placed and tensor.device is not None and tensor.device.may_be_gpu


def _learning_calls(owner: InstanceValue, context: CheckContext) -> Iterator[ForwardCalled]:
    """Yield the calls of a module in training loops with a backward of its result."""
    for call in of_kind(context, ForwardCalled):
        if owner in call.modules and call.recording and call.loops and _is_learned_from(call, context):
            yield call


def _is_learned_from(call: ForwardCalled, context: CheckContext) -> bool:
    """Whether a training loop computes gradients of a loss of this call's result."""
    loop = call.loops[-1].loop
    result = as_tensor(call.result)
    return is_followed(loop) and any(
        is_certain(backward, loop) and (result is None or _depends(as_tensor(backward.loss), result))
        for backward in within(loop, context, Backward)
    )


def _depends(loss: TensorValue | None, result: TensorValue) -> bool:
    return loss is not None and depends_on(loss, result)


def _given(call: ForwardCalled, context: CheckContext) -> frozenset[Value] | None:
    """Return the modules with parameters in the optimizers of the loop around a call, None if not known.

    One of them trains a part of the called module.
    """
    steps = within(call.loops[-1].loop, context, OptimizerStepped)
    built = list(of_kind(context, OptimizerCreated))
    if not steps or not are_all_known(steps, built):
        return None
    found: set[Value] = set()
    for each in built:
        owners = facts_of(each.optimizer).known(Owners)
        for owner in owners.modules if owners is not None else ():
            below = registered_in(owner)
            if below is None:
                return None
            found |= below
    return None if found.isdisjoint(call.modules) else frozenset(found)


def _is_registered_by_hand(event: UnregisteredSet) -> bool:
    """Whether the class may register the value of an attribute by hand, or in another function."""
    module, scope = event.place.module, enclosing_class(event.place)
    value = assigned_value(event.place)
    if scope is None or value is None:
        return True
    passed = {module.code(event.place.node)} | ({value.value} if isinstance(value, cst.Name) else set())
    for call in nodes(scope):
        if isinstance(call, cst.Call):
            name = dotted_name(call.func).rpartition(".")[2]
            is_reading = name in _READING or isinstance(event.value, TensorValue)
            if name in _REGISTERING:
                return True
            if not is_reading and any(_names(each.value) & passed for each in call.args):
                return True
    return False


def _names(node: cst.CSTNode) -> set[str]:
    """Return the dotted names in an argument, except for those called or read by index or attribute."""
    if isinstance(node, cst.Call):
        return {name for each in node.args for name in _names(each.value)}
    if isinstance(node, (cst.Name, cst.Attribute)):
        return {dotted_name(node)}
    if isinstance(node, (cst.ListComp, cst.GeneratorExp, cst.SetComp)):
        found = _names(node.elt)
        of_items = found & set(target_names(node.for_in.target))
        return found | (_names(node.for_in.iter) if of_items else set())
    return {name for child in children(node) for name in _names(child)}


def _called(call: ForwardCalled) -> str:
    node = call.place.node
    return abbreviate(call.place.module.code(node.func if isinstance(node, cst.Call) else node))


def _finding(
    event: UnregisteredSet,
    context: CheckContext,
    call: ForwardCalled,
    kind: str,
    created: Place,
    rule: Rule,
    fixes: Iterator[Fix],
) -> Diagnostic:
    attribute = event.place.module.code(event.place.node)
    step = within(call.loops[-1].loop, context, OptimizerStepped)[0]
    built = next(each for each in of_kind(context, OptimizerCreated) if each.optimizer is step.optimizer)
    what = "layers in" if kind == "layers" else "tensor"
    which = _CONTAINERS.get(type(event.value), "")
    plain = f" (a plain {which})" if which else ""
    return rule.diagnostic(
        event.place.span,
        f"{what} `{attribute}`{plain} {'are' if which else 'is'} not registered: never trained, not moved by "
        "`.to()`, not saved",
        evidence=[
            *call_trace(event),
            Evidence(created.span, "created here"),
            Evidence(event.place.span, "assigned to the module, but not registered as part of it"),
            Evidence(built.place.span, "the optimizer gets registered parameters only"),
            Evidence(call.place.span, "used in training here"),
        ],
        fixes=fixes,
    )


def _listed(event: UnregisteredSet, held: list[Value]) -> Iterator[Fix]:
    """Wrap the container into a ModuleList or ModuleDict, if all its items are modules."""
    are_modules = all(isinstance(each, (InstanceValue, LibraryObject)) for each in held)
    value = event.value
    if isinstance(value, DictValue):
        kind = "ModuleDict"
        direct = list(value.fields.values())
        # The keys of a ModuleDict are texts, those that a loop writes are not known.
        are_modules = are_modules and value.rest is None and all(isinstance(key, str) for key in value.fields)
    else:
        kind = "ModuleList"
        direct = list(value.items or held) if isinstance(value, (ListValue, TupleValue)) else []
    is_flat = are_modules and all(isinstance(each, (InstanceValue, LibraryObject)) for each in direct)
    message = f"register them: `nn.{kind}(…)`"
    yield rewrites.unsafe_or_advice(message, wrapped(event, kind) if is_flat else None)
