"""Find the certain calls of a function: those before its first branch."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.interpreter.modules import children

_SKIPPING = (
    cst.IfExp,
    cst.BooleanOperation,
    cst.Lambda,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
    cst.GeneratorExp,
    cst.Comparison,
    cst.Yield,
    cst.Await,
)
"""Expressions that may not evaluate all of their parts, or not now."""


def certain_calls(function: cst.FunctionDef) -> frozenset[cst.Call]:
    """Return the calls of a function up to its first branch, loop, `with`, `try` or `return`.

    A method that writes in place ends them, too: after it, an argument may have other sizes.
    """
    found: list[cst.Call] = []
    for statement in _straight(function):
        if isinstance(statement, (cst.Raise, cst.Del)):
            break
        calls = list(_calls(statement))
        if any(_writes_in_place(call) for call in calls):
            break
        found += calls
        if isinstance(statement, cst.Return) or _sets_attribute(statement):
            break
    return frozenset(found)


def _straight(function: cst.FunctionDef) -> Iterator[cst.BaseSmallStatement]:
    if not isinstance(function.body, cst.IndentedBlock):
        return
    for line in function.body.body:
        if not isinstance(line, cst.SimpleStatementLine):
            return
        yield from line.body


def _calls(node: cst.CSTNode) -> Iterator[cst.Call]:
    if isinstance(node, _SKIPPING):
        return
    if isinstance(node, cst.Assert):
        # The message of an assert is evaluated only if it fails.
        yield from _calls(node.test)
        return
    if isinstance(node, cst.Call):
        yield node
    for child in children(node):
        yield from _calls(child)


def _writes_in_place(call: cst.Call) -> bool:
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    return name.endswith("_") and not name.endswith("__")


def _sets_attribute(statement: cst.BaseSmallStatement) -> bool:
    """Check for `x.data = …` and `self.layer = …`: later calls may use other sizes or layers."""
    if isinstance(statement, cst.Assign):
        return any(_has_attribute(target.target) for target in statement.targets)
    if isinstance(statement, (cst.AnnAssign, cst.AugAssign)):
        return _has_attribute(statement.target)
    return False


def _has_attribute(target: cst.BaseExpression) -> bool:
    if isinstance(target, (cst.Tuple, cst.List)):
        return any(_has_attribute(element.value) for element in target.elements)
    return isinstance(target, cst.Attribute)
