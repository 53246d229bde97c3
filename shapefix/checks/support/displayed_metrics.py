"""Metrics beside the loss in a line of output, a log or a result."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.support.syntax import enclosing
from shapefix.domains.exponentials import ClampedExp
from shapefix.interpreter.modules import Module, children, dotted_name, nodes

_HOLDERS = (cst.Tuple, cst.List, cst.Dict, cst.Call, cst.FormattedString)
_COMPUTING = frozenset(
    {"min", "max", "exp", "float", "int", "round", "abs", "item", "clamp", "clip", "sum", "mean", "tensor"}
)
"""Calls that compute with a number, and do not show or store it."""
_MODULES = frozenset({"math", "np", "numpy", "torch"})


def is_beside_loss(event: ClampedExp) -> bool:
    """Whether every use of a capped perplexity shows, logs or returns the loss with it."""
    module, node = event.place.module, event.place.node
    if event.exponential.module is not module:
        return False
    around = enclosing(module, node)
    losses = _losses(event, around)
    if not losses:
        return False
    target = _assigned_name(around)
    if target is None or _is_shown(around, losses):
        return _is_shown(around, losses)
    body = _scope(around)
    uses = [path for path in _reads(module, body, target) if node not in path]
    return bool(uses) and all(_is_shown(path, losses) for path in uses)


def _losses(event: ClampedExp, around: list[cst.CSTNode]) -> set[str]:
    """Return the variables of the exponent."""
    exponential = event.exponential.node
    if not isinstance(exponential, cst.Call):
        return set()
    given: list[cst.CSTNode] = [argument.value for argument in exponential.args]
    if not given and isinstance(exponential.func, cst.Attribute):
        given = [exponential.func.value]
    return {name for part in given for name in _variables(part)} - _MODULES


def _variables(node: cst.CSTNode) -> Iterator[str]:
    """Yield the variables and attributes in an expression: `out.loss` of `out.loss.item() / 2`."""
    if isinstance(node, cst.Call):
        parts: list[cst.CSTNode] = [argument.value for argument in node.args]
        if isinstance(node.func, cst.Attribute):
            parts.append(node.func.value)
        for part in parts:
            yield from _variables(part)
    elif isinstance(node, (cst.Name, cst.Attribute)) and dotted_name(node):
        yield dotted_name(node)
    else:
        for child in children(node):
            yield from _variables(child)


def _assigned_name(around: list[cst.CSTNode]) -> str | None:
    """Return the variable of an assignment, None for any other statement."""
    for node in reversed(around):
        if isinstance(node, cst.Assign):
            return dotted_name(node.targets[0].target) or None
        if isinstance(node, cst.BaseSmallStatement):
            return None
    return None


def _scope(around: list[cst.CSTNode]) -> cst.CSTNode:
    scopes = [node for node in around if isinstance(node, (cst.Module, cst.FunctionDef))]
    return scopes[-1] if scopes else around[0]


def _reads(module: Module, body: cst.CSTNode, name: str) -> Iterator[list[cst.CSTNode]]:
    """Yield the path to each read of a variable."""
    for node in nodes(body):
        if isinstance(node, (cst.Name, cst.Attribute)) and dotted_name(node) == name:
            path = enclosing(module, node)
            if not any(isinstance(each, cst.AssignTarget) for each in path):
                yield path


def _is_shown(path: list[cst.CSTNode], losses: set[str]) -> bool:
    """Whether a use is in a call, text or collection with the loss as another part."""
    for position in range(len(path) - 2, -1, -1):
        node = path[position]
        if isinstance(node, cst.BaseSmallStatement):
            return False
        if not isinstance(node, _HOLDERS) or _computes(node):
            continue
        own = path[position + 1]
        others = [part for part in children(node) if part is not own]
        if any(not losses.isdisjoint(_variables(part)) for part in others):
            return True
    return False


def _computes(node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.Call):
        return False
    name = node.func.attr.value if isinstance(node.func, cst.Attribute) else dotted_name(node.func)
    return name in _COMPUTING
