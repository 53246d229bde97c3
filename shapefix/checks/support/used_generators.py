"""Generators of parameters used up before an optimizer gets them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from shapefix.checks.support.syntax import enclosing
from shapefix.interpreter.modules import Place, dotted_name, nodes, target_names

_GENERATORS = frozenset({"parameters", "named_parameters", "filter"})
_READERS = frozenset({"list", "tuple", "set", "sorted", "sum", "max", "min", "dict"})


def used_up(place: Place) -> tuple[cst.CSTNode, cst.CSTNode] | None:
    """Return the creation of a generator and the statement with its last item, before the call at a place.

    Both are statements of the same block, always run before the call.
    """
    node = place.node
    if not isinstance(node, cst.Call) or not node.args or not isinstance(node.args[0].value, cst.Name):
        return None
    name = node.args[0].value.value
    around = enclosing(place.module, node)
    block = next(
        (each for each in reversed(around) if isinstance(each, (cst.IndentedBlock, cst.Module))), None
    )
    if block is None:
        return None
    used: cst.CSTNode | None = None
    for statement in reversed(list(_before(block.body, around))):
        if _binds(statement, name):
            is_generator = _is_generator(statement, name)
            return (statement, used) if is_generator and used is not None else None
        if _reads_all(statement, name):
            used = statement
    return None


def _before(body: Sequence[cst.BaseStatement], around: list[cst.CSTNode]) -> Iterator[cst.BaseStatement]:
    for statement in body:
        if any(statement is each for each in around):
            return
        yield statement


def _binds(statement: cst.CSTNode, name: str) -> bool:
    targets = (
        each.target
        for each in nodes(statement)
        if isinstance(each, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For))
    )
    return any(name in target_names(target) for target in targets)


def _is_generator(statement: cst.BaseStatement, name: str) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    made = statement.body[0]
    if not isinstance(made, cst.Assign) or len(made.targets) != 1:
        return False
    if not isinstance(made.targets[0].target, cst.Name):
        return False
    value = made.value
    if isinstance(value, cst.Call):
        return dotted_name(value.func).rpartition(".")[2] in _GENERATORS
    return isinstance(value, cst.GeneratorExp)


def _reads_all(statement: cst.BaseStatement, name: str) -> bool:
    """Whether a statement certainly reads the last item of a generator."""
    if isinstance(statement, cst.For):
        stops = (cst.Break, cst.Return, cst.Raise)
        is_whole = not any(isinstance(each, stops) for each in nodes(statement.body))
        return is_whole and _is_name(statement.iter, name)
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    found = list(nodes(statement))
    if any(isinstance(each, (cst.Lambda, cst.IfExp, cst.BooleanOperation)) for each in found):
        return False
    for each in found:
        if isinstance(each, (cst.ListComp, cst.SetComp, cst.DictComp)) and _is_name(each.for_in.iter, name):
            return True
        if isinstance(each, cst.Call) and dotted_name(each.func) in _READERS and each.args:
            given = each.args[0].value
            if _is_name(given, name) or (
                isinstance(given, cst.GeneratorExp) and _is_name(given.for_in.iter, name)
            ):
                return True
    return False


def _is_name(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name
