"""SF615: a state kept for later without a copy of the weights."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing, enclosing_function
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Import, Role
from shapefix.domains.checkpoints import StateRestored
from shapefix.interpreter.modules import Module, Place, nodes


@rule("SF615", on=StateRestored)
def live_state(event: StateRestored, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    module, call = event.place.module, event.place.node
    if not isinstance(call, cst.Call) or not call.args or not isinstance(call.func, cst.Attribute):
        return
    given = call.args[0].value
    if not isinstance(given, cst.Name):
        return
    scope = enclosing_function(event.place) or module.tree
    model = module.code(call.func.value)
    kept = _kept(scope, given.value)
    taken = [value for value in kept if _is_state_of(module, value, model)]
    if not taken or any(value not in taken and not _is_none(value) for value in kept):
        return
    first = next((value for value in taken if _is_trained_on(module, scope, value, call)), None)
    if first is None or _uses_between(scope, given.value) or _rebinds(module, scope, model):
        return
    place = Place(module, first)
    edits = tuple(Edit(module.span(value), f"copy.deepcopy({module.code(value)})") for value in taken)
    yield rule.diagnostic(
        event.place.span,
        f"`{given.value}` is the state that `{model}` still trains ({rewrites.line_of(place, module)}): "
        "loading it changes nothing",
        evidence=[
            *call_trace(event),
            Evidence(place.span, "no copy: these are the weights of the model themselves", Role.CAUSE),
            Evidence(event.place.span, "the weights are loaded into themselves", Role.FAILURE),
        ],
        fixes=[
            Fix(
                Applicability.UNSAFE,
                "keep a copy of the state: `copy.deepcopy`",
                edits,
                (Import("copy"),),
            )
        ],
    )


def _kept(scope: cst.CSTNode, name: str) -> list[cst.BaseExpression]:
    """Return all values assigned to a variable, in a function or at the top level of a file."""
    found: list[cst.BaseExpression] = []
    for node in nodes(scope):
        if isinstance(node, cst.Assign):
            found += [
                node.value
                for target in node.targets
                if isinstance(target.target, cst.Name) and target.target.value == name
            ]
    return found


def _is_none(value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Dict):
        return not value.elements
    return isinstance(value, cst.Name) and value.value == "None"


def _is_state_of(module: Module, value: cst.BaseExpression, model: str) -> bool:
    """Whether a value is `model.state_dict()` itself."""
    return (
        isinstance(value, cst.Call)
        and not value.args
        and isinstance(value.func, cst.Attribute)
        and value.func.attr.value == "state_dict"
        and module.code(value.func.value) == model
    )


def _is_trained_on(module: Module, scope: cst.CSTNode, taken: cst.CSTNode, loaded: cst.CSTNode) -> bool:
    """Whether a state is taken in a training loop, and loaded after it."""
    around = enclosing(module, taken)
    if not any(isinstance(node, cst.If) and _compares(node.test) for node in around):
        # The last state of a loop, not the best one.
        return False
    for node in around:
        if not isinstance(node, (cst.For, cst.While)) or any(each is loaded for each in nodes(node)):
            continue
        for each in nodes(node):
            if isinstance(each, cst.Call) and isinstance(each.func, cst.Attribute):
                if each.func.attr.value == "step" and _is_optimizer(module, scope, each.func.value):
                    return True
    return False


def _compares(test: cst.BaseExpression) -> bool:
    """Whether a condition compares two values by their order, such as a loss with the lowest one."""
    ordered = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
    targets = (node for node in nodes(test) if isinstance(node, cst.ComparisonTarget))
    return any(isinstance(target.operator, ordered) for target in targets)


def _is_optimizer(module: Module, scope: cst.CSTNode, owner: cst.BaseExpression) -> bool:
    """Whether a name is that of an optimizer, by its `zero_grad` in the same code."""
    code = module.code(owner)
    return any(
        isinstance(each, cst.Call)
        and isinstance(each.func, cst.Attribute)
        and each.func.attr.value == "zero_grad"
        and module.code(each.func.value) == code
        for each in nodes(scope)
    )


def _uses_between(scope: cst.CSTNode, name: str) -> bool:
    """Whether other code may change the variable: a deletion, an item, or a declaration as global."""
    for node in nodes(scope):
        if isinstance(node, (cst.Global, cst.Nonlocal)) and any(n.name.value == name for n in node.names):
            return True
        target = node.target if isinstance(node, (cst.AssignTarget, cst.For)) else None
        if isinstance(target, cst.Subscript) and isinstance(target.value, cst.Name):
            if target.value.value == name:
                return True
    return False


def _rebinds(module: Module, scope: cst.CSTNode, model: str) -> bool:
    """Whether the model is assigned in a loop: then the state may be that of another one."""
    for loop in nodes(scope):
        if isinstance(loop, (cst.For, cst.While)):
            for each in nodes(loop):
                if isinstance(each, cst.AssignTarget) and module.code(each.target) == model:
                    return True
    return False
