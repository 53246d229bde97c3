"""Lists of whole numbers computed from a range: `[i % 3 for i in range(60)]`."""

from __future__ import annotations

import operator
from collections.abc import Callable

import libcst as cst

from shapefix.interpreter.containers import ListValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.names import peek
from shapefix.interpreter.values import Constant, Integer, Unknown, Value
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import ListedNumber

_LONGEST = 10_000
"""Longest range that is computed."""
_LISTED = 256
"""Maximum number of numbers kept one by one."""
_OPERATIONS: dict[type[cst.BaseBinaryOp], Callable[[int, int], int]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.FloorDivide: operator.floordiv,
    cst.Modulo: operator.mod,
}


def list_of_numbers(ev: Evaluator, node: cst.ListComp) -> Value | None:
    """List of the numbers of a comprehension over a range; None for other code."""
    loop = node.for_in
    if loop.ifs or loop.inner_for_in is not None or not isinstance(loop.target, cst.Name):
        return None
    counted = _range(ev, loop.iter) if isinstance(node.elt, cst.BinaryOperation) else None
    compute = None if counted is None else _function(ev, node.elt, loop.target.value)
    if counted is None or compute is None:
        return None
    try:
        numbers = [compute(number) for number in counted]
    except ArithmeticError:
        return None
    if len(numbers) <= _LISTED:
        return ListValue(tuple(map(Constant, numbers)))
    least, most = min(numbers), max(numbers)
    # A number of a list with gaps may not be any number between its ends.
    if len(set(numbers)) <= most - least or least == most:
        return None
    return ListValue(
        None, Integer(Size.from_symbol(ListedNumber(range(least, most + 1)))), Size.of(len(numbers))
    )


def item_of(ev: Evaluator, node: cst.BaseExpression) -> Value:
    """Item of a comprehension; one of two whole numbers for `[1 if tag in row else 0 for tag in tags]`."""
    item = ev.evaluate(node)
    if not isinstance(item, Unknown) or not isinstance(node, cst.IfExp):
        return item
    numbers = [_number(ev, side) for side in (node.body, node.orelse)]
    known = [number for number in numbers if number is not None]
    if len(known) < 2 or known[0] == known[1]:
        return item
    return Integer(Size.from_symbol(ListedNumber(known)))


def _range(ev: Evaluator, node: cst.BaseExpression) -> range | None:
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name) or node.func.value != "range":
        return None
    bounds = [_number(ev, given.value) for given in node.args if not given.star and given.keyword is None]
    known = [bound for bound in bounds if bound is not None]
    if not 0 < len(known) == len(node.args) <= 3 or known[2:] == [0]:
        return None
    numbers = range(*known)
    return numbers if 2 <= len(numbers) <= _LONGEST else None


def _number(ev: Evaluator, node: cst.BaseExpression) -> int | None:
    """Whole number of a literal or a variable."""
    if isinstance(node, cst.Integer):
        return node.evaluated_value
    value = peek(ev, node) if isinstance(node, cst.Name) else None
    return value.value if isinstance(value, Constant) and type(value.value) is int else None


def _function(ev: Evaluator, node: cst.BaseExpression, name: str) -> Callable[[int], int] | None:
    """Function of the counter with this name; None for code besides whole numbers and operators."""
    if isinstance(node, cst.Name) and node.value == name:
        return lambda number: number
    if isinstance(node, (cst.Integer, cst.Name)):
        fixed = _number(ev, node)
        return None if fixed is None else lambda _: fixed
    operate = _OPERATIONS.get(type(node.operator)) if isinstance(node, cst.BinaryOperation) else None
    if operate is None or not isinstance(node, cst.BinaryOperation):
        return None
    left, right = _function(ev, node.left, name), _function(ev, node.right, name)
    if left is None or right is None:
        return None
    return lambda number: operate(left(number), right(number))
