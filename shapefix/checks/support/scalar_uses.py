"""Uses of a variable with a tensor of one element: is a plain number enough?"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.support.syntax import enclosing
from shapefix.interpreter.modules import Module, Place, children, dotted_name, target_names

_SHOWS = frozenset({"print", "str", "float", "round", "len", "format", "isinstance"})
_LOGS = frozenset(
    {
        "info",
        "debug",
        "warning",
        "error",
        "log",
        "add_scalar",
        "set_postfix",
        "set_postfix_str",
        "set_description",
        "log_metric",
        "log_metrics",
        "add_scalars",
        "write",
        "format",
        "log_dict",
    }
)
_DEEPEST = 3


def is_only_a_number(place: Place, holder: cst.BaseExpression) -> bool:
    """Whether the function around place, or the file, only adds to holder, divides, compares and shows it.

    Only variables count: values in an object or a dictionary may have other readers.
    """
    if not isinstance(holder, cst.Name):
        return False
    around = enclosing(place.module, place.node)
    functions = [node for node in around if isinstance(node, cst.FunctionDef)]
    if not functions and _is_shared(place.module, holder.value):
        return False
    body = functions[-1] if functions else place.module.tree
    return _is_number(body, holder.value, 0)


def may_be_differentiated(place: Place, holder: cst.BaseExpression) -> bool:
    """Whether the holder's value, or a value computed from it, is passed to a possibly differentiating call.

    Only variables are followed, with what they contain, and their assignments to other variables, in the
    function around place.
    """
    while isinstance(holder, cst.Subscript):
        holder = holder.value
    if not isinstance(holder, cst.Name):
        return False
    around = enclosing(place.module, place.node)
    functions = [node for node in around if isinstance(node, cst.FunctionDef)]
    body = functions[-1] if functions else place.module.tree
    return any(
        _gives_away(path) for name in _derived(body, holder.value) for path in _mentions(body, [body], name)
    )


_BINDING = (cst.AugAssign, cst.AnnAssign, cst.NamedExpr)
_LOOPS = (cst.For, cst.CompFor)


def _derived(body: cst.CSTNode, name: str) -> list[str]:
    """Return a variable and all variables computed from it."""
    found = [name]
    for each in found:
        for path in _mentions(body, [body], each):
            for parent, child in zip(reversed(path[:-1]), reversed(path[1:]), strict=True):
                names: list[str] = []
                if isinstance(parent, cst.Assign) and child is parent.value:
                    names = [one for target in parent.targets for one in target_names(target.target)]
                elif isinstance(parent, (*_BINDING, *_LOOPS)):
                    source = parent.iter if isinstance(parent, _LOOPS) else parent.value
                    names = list(target_names(parent.target)) if child is source else []
                found.extend(one for one in names if one not in found)
    return found


def _gives_away(path: list[cst.CSTNode]) -> bool:
    """Whether a mention of a variable is part of an argument of an unknown call."""
    for parent, child in zip(reversed(path[:-1]), reversed(path[1:]), strict=True):
        if isinstance(parent, (cst.BaseSuite, cst.SimpleStatementLine)):
            return False
        if not isinstance(parent, cst.Call):
            continue
        function = parent.func
        if child is function:
            if isinstance(function, cst.Attribute) and function.attr.value in _NUMBERS:
                return False
            if isinstance(function, cst.Attribute) and function.attr.value == "backward":
                return True
        elif not _is_shown(parent) and not _only_computes(function):
            return True
        elif isinstance(function, cst.Name) and function.value in _SHOWS:
            return False
    return False


_NUMBERS = frozenset(["item", "tolist", "detach", "numpy"])
_COMPUTES = frozenset(
    ["sum", "max", "min", "abs", "range", "enumerate", "zip", "list", "tuple", "sorted", "reversed"]
)


def _only_computes(function: cst.BaseExpression) -> bool:
    """Whether a call computes values of its arguments, but no gradients."""
    if isinstance(function, cst.Name):
        return function.value in _COMPUTES
    name = dotted_name(function)
    kept = isinstance(function, cst.Attribute) and function.attr.value in ("append", "extend", "add")
    return kept or (name.startswith(("torch.", "np.", "numpy.")) and not name.startswith("torch.autograd."))


def _is_shared(module: Module, name: str) -> bool:
    """Whether functions of the file read a name of its top level."""
    return any(
        any(True for _ in _mentions(node, [node], name))
        for node in module.tree.body
        if isinstance(node, (cst.FunctionDef, cst.ClassDef))
    )


def _is_number(body: cst.CSTNode, name: str, depth: int) -> bool:
    return depth < _DEEPEST and all(_is_harmless(path, body, depth) for path in _mentions(body, [body], name))


def _is_harmless(path: list[cst.CSTNode], body: cst.CSTNode, depth: int) -> bool:
    """Whether a plain number is enough for a mention of a variable."""
    name = path[-1]
    for parent, child in zip(reversed(path[:-1]), reversed(path[1:]), strict=True):
        if isinstance(parent, (cst.FormattedStringExpression, cst.Comparison, cst.ComparisonTarget)):
            return True
        if isinstance(parent, cst.AugAssign):
            return parent.target is name or _feeds(parent.target, body, depth)
        if isinstance(parent, cst.AssignTarget):
            continue
        if isinstance(parent, cst.Assign):
            if child is not parent.value:
                return _is_given_number(child.target, parent.value, name)  # type: ignore[attr-defined]
            return all(_feeds(target.target, body, depth) for target in parent.targets)
        if isinstance(parent, cst.Arg):
            continue
        if isinstance(parent, cst.Call):
            return child is not parent.func and _is_shown(parent)
        if isinstance(parent, (cst.BinaryOperation, cst.Dict, cst.DictElement, cst.Tuple, cst.Element)):
            continue
        return False
    return False


def _is_given_number(target: cst.CSTNode, value: cst.BaseExpression, name: cst.CSTNode) -> bool:
    """Whether an assignment gives a variable, alone or among others, a number, or adds to it."""
    if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
        pairs = zip(target.elements, value.elements, strict=False)
        return any(one.value is name and _is_literal(other.value, name) for one, other in pairs)
    return target is name and _is_literal(value, name)


def _is_literal(value: cst.BaseExpression, name: cst.CSTNode) -> bool:
    """Whether a variable is given a number, or the sum of itself and more."""
    if isinstance(value, cst.BinaryOperation) and isinstance(name, cst.Name):
        return isinstance(value.left, cst.Name) and value.left.value == name.value
    return isinstance(value, (cst.Integer, cst.Float))


def _feeds(target: cst.BaseExpression, body: cst.CSTNode, depth: int) -> bool:
    """Whether the assigned variable is also used only as a number."""
    if not isinstance(target, cst.Name):
        return False
    written = _written(body, target.value)
    return (
        all(
            _is_harmless(path, body, depth + 1)
            for path in _mentions(body, [body], target.value)
            if path[-1] not in written
        )
        if depth + 1 < _DEEPEST
        else False
    )


def _written(body: cst.CSTNode, name: str) -> set[cst.CSTNode]:
    return {path[-1] for path in _mentions(body, [body], name) if isinstance(path[-2], cst.AssignTarget)}


def _is_shown(call: cst.Call) -> bool:
    function = call.func
    if isinstance(function, cst.Name):
        return function.value in _SHOWS
    return isinstance(function, cst.Attribute) and function.attr.value in _LOGS


def _mentions(node: cst.CSTNode, path: list[cst.CSTNode], name: str) -> Iterator[list[cst.CSTNode]]:
    """Yield the paths from the body to each mention of a variable."""
    for child in children(node):
        if isinstance(child, cst.Name):
            if child.value == name and not _is_label(node, child):
                yield [*path, child]
        elif not isinstance(child, cst.Parameters):
            yield from _mentions(child, [*path, child], name)


def _is_label(parent: cst.CSTNode, name: cst.Name) -> bool:
    """Whether a name is an attribute, a keyword or a function's name instead of a variable."""
    if isinstance(parent, cst.Attribute):
        return parent.attr is name
    if isinstance(parent, cst.Arg):
        return parent.keyword is name
    return isinstance(parent, (cst.FunctionDef, cst.ClassDef, cst.NameItem))
