"""Variables and sizes inside of a branch: its condition may exclude None, or state a number."""

from __future__ import annotations

from typing import Any

import libcst as cst

from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.fixed_sizes import fix_size
from shapefix.interpreter.values import (
    NONE,
    InstanceValue,
    LibraryObject,
    PerhapsNone,
    Value,
)


def narrow(ev: Evaluator, test: cst.BaseExpression, outcome: bool) -> None:
    """Write the tested variables of a condition as they are after this outcome."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        narrow(ev, test.expression, not outcome)
    elif isinstance(test, cst.BooleanOperation):
        # Both sides have the outcome only where `and` is true, or `or` is false.
        if isinstance(test.operator, cst.And) is outcome:
            narrow(ev, test.left, outcome)
            narrow(ev, test.right, outcome)
    elif isinstance(test, cst.Comparison):
        fix_size(ev, test, outcome)
        is_none = _compares_with_none(test)
        if is_none is not None:
            _write(ev, test.left, exists=is_none is not outcome)
    elif outcome:
        # A false value may be None, or empty.
        _write(ev, test, exists=True)


def _compares_with_none(test: cst.Comparison) -> bool | None:
    """Check for `x is None`; False for `x is not None`, None for other comparisons."""
    target = test.comparisons[0]
    compared = target.comparator
    if len(test.comparisons) > 1 or not isinstance(compared, cst.Name) or compared.value != "None":
        return None
    if isinstance(target.operator, (cst.Is, cst.Equal)):
        return True
    return False if isinstance(target.operator, (cst.IsNot, cst.NotEqual)) else None


def _write(ev: Evaluator, node: cst.BaseExpression, *, exists: bool) -> None:
    found = _variable(ev, node)
    if found is None:
        return
    names, name = found
    held = names.get(name)
    if isinstance(held, PerhapsNone):
        ev.journal.write(names, name, held.value if exists else NONE)


def _variable(ev: Evaluator, node: cst.BaseExpression) -> tuple[dict[Any, Any], str] | None:
    """Names of a scope or of an object, and the one read by node; None for other expressions."""
    if isinstance(node, cst.Name):
        return ev.frame.scope.home(node.value).names, node.value
    if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name):
        owner: Value | None = ev.frame.scope.names.get(node.value.value)
        if isinstance(owner, (InstanceValue, LibraryObject)):
            return owner.fields, node.attr.value
    return None
