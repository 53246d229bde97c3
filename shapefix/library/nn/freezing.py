"""Frozen modules: parameters frozen in a loop, and unfrozen by other code."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.domains.gradients import Gradients, require_grad
from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Call, before_call
from shapefix.interpreter.containers import ListValue, TupleValue
from shapefix.interpreter.evaluator import Evaluator, Loop
from shapefix.interpreter.modules import dotted_name, nodes, target_names
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    FALSE,
    Constant,
    InstanceValue,
    LibraryObject,
    ModulePart,
    Parameter,
    Value,
)
from shapefix.library.nn.changed_weights import LayerWeights
from shapefix.library.nn.module import MODULE, modules_in, own_leaves
from shapefix.library.nn.training import Frozen, Trained
from shapefix.library.registry import derives

_SWITCH = "requires_grad"
_METHOD = "torch.Tensor.requires_grad_"
_NAMED = frozenset({"parameters", "named_parameters"})
_HARMLESS = frozenset({"train", "eval", "zero_grad", "state_dict", "to", "cuda", "cpu", "parameters"})
_LEAVING = (cst.Continue, cst.Break, cst.Return, cst.Raise, cst.Yield)


def may_unfreeze(ev: Evaluator, value: Value | None) -> None:
    """Forget frozen parameters of a module and of those below it: code may unfreeze or add some."""
    owners = value.modules if isinstance(value, ModulePart) else (value,)
    for owner in owners:
        for module in modules_in(owner) if owner is not None else ():
            if isinstance(module.facts.known(Trained), Frozen):
                ev.journal.write(module.facts, Trained, None)


@hooks.escape
def _escaped(ev: Evaluator, value: Value) -> None:
    may_unfreeze(ev, value)


@before_call
def _note_arguments(call: Call) -> None:
    """Note modules in calls of libraries other than torch: adapters add trained parameters."""
    if call.name == _METHOD and call.value(0) is not FALSE and call.receiver is not None:
        _unfreeze_owner(call.ev, call.receiver)
    if not call.name.startswith(("torch.", "builtins.", "operator.")):
        for given in call.arguments.everything:
            may_unfreeze(call.ev, given)
        if call.name.rpartition(".")[2] not in _HARMLESS and not call.name.endswith(("forward", "__call__")):
            may_unfreeze(call.ev, call.receiver)


@hooks.read_unknown
def _note_method(ev: Evaluator, owner: Value, name: str) -> None:
    if isinstance(owner, (InstanceValue, LibraryObject)) or name == f"{_SWITCH}_":
        _unfreeze_owner(ev, owner)


@hooks.set_attribute
def _note_set(ev: Evaluator, owner: Value, name: str, value: Value, node: cst.CSTNode) -> None:
    if name == _SWITCH and not (isinstance(value, Constant) and value.value is False):
        _unfreeze_owner(ev, owner)
    elif isinstance(owner, LibraryObject) and derives(owner.kind, MODULE):
        may_unfreeze(ev, owner)


def _unfreeze_owner(ev: Evaluator, owner: Value) -> None:
    """Record that a parameter, or the parameters of a module, may be unfrozen."""
    if isinstance(owner, TensorValue):
        layer = ev.state[LayerWeights].layers.get(owner)
        if layer is not None:
            may_unfreeze(ev, layer[0])
        elif owner.own or owner.graph is None:
            ev.state[Gradients].thawed = True
    elif isinstance(owner, (ModulePart, InstanceValue, LibraryObject)):
        may_unfreeze(ev, owner)
    else:
        ev.state[Gradients].thawed = True


@hooks.end_loop
def _freeze(ev: Evaluator, loop: Loop) -> None:
    """Freeze a module after a loop over all of its parameters, with each of them frozen."""
    node, given = loop.node, loop.iterable
    if not isinstance(node, cst.For) or not isinstance(given, ListValue):
        return
    item = given.element
    if isinstance(item, TupleValue) and item.items:
        item = item.items[-1]
    call = node.iter
    is_plain = isinstance(call, cst.Call) and not call.args
    is_whole = is_plain and isinstance(call, cst.Call) and dotted_name(call.func).rpartition(".")[2] in _NAMED
    if isinstance(item, Parameter) and is_whole and _freezes_each(node):
        for owner in item.modules:
            for module in modules_in(owner):
                if Trained in module.facts:
                    frozen = Frozen(ev.entry_point, ev.place(node.iter))
                    ev.journal.write(module.facts, Trained, frozen)
                for tensor in own_leaves(ev, module):
                    require_grad(ev, tensor, False)


def _freezes_each(loop: cst.For) -> bool:
    """Check whether the body of a loop freezes its last variable, and does nothing else with it."""
    names = list(target_names(loop.target))
    everything = list(nodes(loop.body))
    switched = [each for each in everything if isinstance(each, cst.Name) and each.value.startswith(_SWITCH)]
    if not names or len(switched) != 1 or any(isinstance(each, _LEAVING) for each in everything):
        return False
    return any(_freezes(each, names[-1]) for each in _own_statements(loop.body))


def _own_statements(body: cst.BaseSuite) -> Iterator[cst.BaseSmallStatement]:
    """Yield the simple statements of a body, those on the line of its colon included."""
    for each in body.body:
        if isinstance(each, cst.BaseSmallStatement):
            yield each
        elif isinstance(each, cst.SimpleStatementLine):
            yield from each.body


def _freezes(statement: cst.BaseSmallStatement, name: str) -> bool:
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        target, value = dotted_name(statement.targets[0].target), statement.value
        return target == f"{name}.{_SWITCH}" and isinstance(value, cst.Name) and value.value == "False"
    call = statement.value if isinstance(statement, cst.Expr) else None
    if not isinstance(call, cst.Call) or len(call.args) != 1 or call.args[0].star:
        return False
    value = call.args[0].value
    is_false = isinstance(value, cst.Name) and value.value == "False"
    return is_false and dotted_name(call.func) == f"{name}.{_SWITCH}_"
