"""Whether the condition of a finding held, for the values that the names in it had in a run."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Mapping

from shapefix.runtime.confirmation.run_record import Held

_MULTIPLE = re.compile(r"(.+) is (?:no|not a) multiple of (.+)")
_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def names(condition: str) -> frozenset[str] | None:
    """The names that a condition speaks of; None where it is said in words."""
    tree = _parsed(condition)
    if tree is None:
        return None
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def holds(condition: str, values: Mapping[str, Held]) -> bool | None:
    """Whether a condition holds for these values; None where that is not known."""
    tree = _parsed(condition)
    if tree is None:
        return None
    try:
        return bool(_value(tree.body, values))
    except (LookupError, TypeError, ArithmeticError):
        return None


def _parsed(condition: str) -> ast.Expression | None:
    said = _MULTIPLE.fullmatch(condition)
    text = f"({said[1]}) % ({said[2]}) != 0" if said else condition
    try:
        return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        return None


def _value(node: ast.expr, values: Mapping[str, Held]) -> int:
    """The number that an expression stands for. Raises LookupError and TypeError for what is not known."""
    match node:
        case ast.BoolOp(op, parts):
            known = [_value(part, values) for part in parts]
            return int(all(known) if isinstance(op, ast.And) else any(known))
        case ast.Compare(left, operations, others):
            numbers = [_value(left, values), *(_value(each, values) for each in others)]
            pairs = zip(operations, numbers, numbers[1:], strict=False)
            return int(all(_COMPARISONS[type(each)](one, two) for each, one, two in pairs))
        case ast.BinOp(left, operation, right):
            number: int = _OPERATIONS[type(operation)](_value(left, values), _value(right, values))
            return number
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand, values)
        case ast.Constant(int(number)):
            return number
        case ast.Name(name):
            held = values[name]
            if isinstance(held, int):
                return held
        case ast.Call(ast.Attribute(ast.Name(name), "size"), [place], []):
            return _size(values[name], _value(place, values))
        case ast.Subscript(ast.Attribute(ast.Name(name), "shape"), place):
            return _size(values[name], _value(place, values))
        case ast.Call(ast.Name("len"), [ast.Name(name)], []):
            return _size(values[name], 0)
    raise TypeError(ast.dump(node))


def _size(held: Held, place: int) -> int:
    if isinstance(held, int):
        raise TypeError(held)
    return held[place]
