"""Conditions of findings as predicates over the variables of the checked code."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Literal

from shapefix.diagnostics import (
    Arithmetic,
    Combination,
    Comparison,
    Condition,
    Expression,
    Predicate,
    Variable,
)
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import Atom, OpaqueStride, PerItemSize, Symbol

_OPERATORS: dict[type[ast.operator], Literal["+", "-", "*", "//", "%"]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_DIVISIONS: dict[str, Literal["//", "%"]] = {"//": "//", "%": "%"}


def comparison(
    left: Expression | None,
    relation: Literal[">", "!=", "is not a multiple of"],
    right: Expression | None,
) -> Predicate | None:
    """Compare two expressions; None if one of them is unknown."""
    return None if left is None or right is None else Comparison(left, relation, right)


def in_backticks(code: str) -> str:
    """Code in backticks; a number is plain."""
    return code if code.isdecimal() else f"`{code}`"


def combined(operator: Literal["and", "or"], conditions: Sequence[Condition]) -> Condition | None:
    """Join conditions; the result has a predicate if all of them have one. None if there are none."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    predicates = [each.predicate for each in conditions if each.predicate is not None]
    text = f" {operator} ".join(each.text for each in conditions)
    is_known = len(predicates) == len(conditions)
    predicate = Combination(operator, tuple(predicates)) if is_known else None
    return Condition(text, predicate, all(each.constant for each in conditions))


def of_size(size: Size) -> Expression | None:
    """Return a size as an expression; None if a symbol in it has no name in the code."""
    total: Expression | None = None
    for symbols, coefficient in size.terms.items():
        term: Expression = coefficient
        for symbol in symbols:
            factor = _of_symbol(symbol)
            if factor is None:
                return None
            term = factor if term == 1 else Arithmetic("*", term, factor)
        total = term if total is None else Arithmetic("+", total, term)
    return 0 if total is None else total


def _of_symbol(symbol: Symbol) -> Expression | None:
    if isinstance(symbol, Atom):
        left, right = of_size(symbol.left), of_size(symbol.right)
        operator = _DIVISIONS.get(symbol.op)
        return (
            None if left is None or right is None or operator is None else Arithmetic(operator, left, right)
        )
    # The name of a size that differs from row to row may be that of another variable.
    return None if isinstance(symbol, (OpaqueStride, PerItemSize)) else of_code(symbol.name)


def of_code(code: str) -> Expression | None:
    """Return code such as `n - 1`, `x.size(0)` or `len(x)` as an expression; None for other code."""
    try:
        return _of_node(ast.parse(code.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _of_node(node: ast.expr) -> Expression | None:
    match node:
        case ast.Constant(int(number)):
            return int(number)
        case ast.Name(name):
            return Variable(name)
        case ast.UnaryOp(ast.USub(), ast.Constant(int(number))):
            return -number
        case ast.BinOp(one, operation, two) if type(operation) in _OPERATORS:
            left, right = _of_node(one), _of_node(two)
            if left is None or right is None:
                return None
            return Arithmetic(_OPERATORS[type(operation)], left, right)
        case ast.Call(ast.Attribute(ast.Name(name), "size"), [place], []):
            return _size(name, place)
        case ast.Subscript(ast.Attribute(ast.Name(name), "shape"), place):
            return _size(name, place)
        case ast.Call(ast.Name("len"), [ast.Name(name)], []):
            return Variable(name, 0)
    return None


def _size(name: str, place: ast.expr) -> Variable | None:
    dim = _of_node(place)
    return Variable(name, dim) if isinstance(dim, int) else None
