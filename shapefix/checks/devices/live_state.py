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
from shapefix.domains.training import OptimizerStepped
from shapefix.interpreter.modules import Module, Place, dotted_name, nodes


@rule("SF615", on=(StateRestored, OptimizerStepped))
def live_state(
    event: StateRestored | OptimizerStepped, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    if isinstance(event, OptimizerStepped):
        yield from _second_names(event, rule)
        return
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


def _second_names(event: OptimizerStepped, rule: Rule) -> Iterator[Diagnostic]:
    """Report `best_model = model` under a comparison, in a training loop."""
    for step in (event.place, *event.calls):
        module, function = step.module, enclosing_function(step)
        for loop in enclosing(module, step.node):
            is_loop = isinstance(loop, (cst.For, cst.While))
            if not is_loop or enclosing_function(Place(module, loop)) is not function:
                continue
            for kept in _compared_copies(loop):
                if _changes_later(module, function or module.tree, loop, kept):
                    yield _second_name(event, rule, Place(module, kept), step)


def _changes_later(module: Module, scope: cst.CSTNode, loop: cst.CSTNode, kept: cst.Assign) -> bool:
    """Whether a statement keeps a model as a second name, and code reads the name after the loop."""
    name, model = module.code(kept.targets[0].target), _model_of(kept.value)
    if isinstance(kept.value, cst.Call) and _is_loaded(scope, name):
        return False
    if not _is_model(scope, model) or _rebinds(module, scope, model):
        return False
    return _is_read_after(module, scope, loop, name)


def _compared_copies(loop: cst.CSTNode) -> Iterator[cst.Assign]:
    """Yield the statements `best = model` under a comparison, unless the loop ends there."""
    for test in nodes(loop):
        if not isinstance(test, cst.If) or not _compares(test.test):
            continue
        inside = list(nodes(test.body))
        if any(isinstance(each, (cst.Break, cst.Return, cst.Raise)) for each in inside):
            continue
        for each in inside:
            if isinstance(each, cst.Assign) and len(each.targets) == 1 and _model_of(each.value):
                if "best" in dotted_name(each.targets[0].target).lower():
                    yield each


def _model_of(value: cst.BaseExpression) -> str:
    """Return `model` of `model` and of `model.state_dict()`; nothing for other values."""
    if isinstance(value, cst.Call):
        owner, _, method = dotted_name(value.func).rpartition(".")
        return owner if method == "state_dict" and not value.args else ""
    return dotted_name(value)


def _is_loaded(scope: cst.CSTNode, name: str) -> bool:
    """Whether code loads a state in a variable; the event of the load reports it."""
    return any(
        isinstance(each, cst.Call)
        and dotted_name(each.func).endswith("load_state_dict")
        and any(dotted_name(given.value) == name for given in each.args)
        for each in nodes(scope)
    )


def _is_model(scope: cst.CSTNode, model: str) -> bool:
    """Whether code calls the methods of a module on a name."""
    own = {f"{model}.{method}" for method in ("parameters", "train", "eval", "state_dict")}
    return any(isinstance(each, cst.Call) and dotted_name(each.func) in own for each in nodes(scope))


def _is_read_after(module: Module, scope: cst.CSTNode, loop: cst.CSTNode, name: str) -> bool:
    """Whether code outside of the loop reads a variable, or code anywhere an attribute of an object."""
    inside = set(nodes(loop))
    where = module.tree if "." in name else scope
    targets = {each.target for each in nodes(where) if isinstance(each, cst.AssignTarget)}
    return any(
        dotted_name(each) == name and each not in inside and each not in targets
        for each in nodes(where)
        if isinstance(each, (cst.Name, cst.Attribute))
    )


def _second_name(event: OptimizerStepped, rule: Rule, kept: Place, step: Place) -> Diagnostic:
    module, node = kept.module, kept.node
    assert isinstance(node, cst.Assign)
    name, value = module.code(node.targets[0].target), module.code(node.value)
    whole = "the live state of" if isinstance(node.value, cst.Call) else "another name for"
    return rule.diagnostic(
        kept.span,
        f"`{name}` is {whole} `{_model_of(node.value)}`: further training changes it, too",
        evidence=[
            Evidence(kept.span, "no copy: these are the weights of the model themselves", Role.CAUSE),
            Evidence(step.span, "the loop goes on to change its weights", Role.FAILURE),
        ],
        fixes=[
            Fix(
                Applicability.UNSAFE,
                "keep a copy: `copy.deepcopy`",
                (Edit(module.span(node.value), f"copy.deepcopy({value})"),),
                (Import("copy"),),
            )
        ],
    )
