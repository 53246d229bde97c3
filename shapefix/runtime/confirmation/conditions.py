"""Evaluate the condition of a finding with the values of a run."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping

from shapefix.diagnostics import Arithmetic, Combination, Comparison, Expression, Predicate, Variable
from shapefix.runtime.confirmation.run_record import RecordedValue

_OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
_RELATIONS: dict[str, Callable[[int, int], int]] = {
    ">": operator.gt,
    "!=": operator.ne,
    "is not a multiple of": operator.mod,
}


def names(predicate: Predicate) -> frozenset[str]:
    """Return the variables of a predicate."""
    return frozenset(_names(predicate))


def _names(part: Predicate | Expression) -> Iterator[str]:
    match part:
        case Combination(_, parts):
            for each in parts:
                yield from _names(each)
        case Comparison(left, _, right) | Arithmetic(_, left, right):
            yield from _names(left)
            yield from _names(right)
        case Variable(name):
            yield name


def holds(predicate: Predicate, values: Mapping[str, RecordedValue]) -> bool | None:
    """Evaluate a predicate; None if the values do not decide it."""
    try:
        return _holds(predicate, values)
    except (LookupError, TypeError, ArithmeticError):
        return None


def _holds(predicate: Predicate, values: Mapping[str, RecordedValue]) -> bool:
    """Evaluate a predicate. Raises LookupError, TypeError or ArithmeticError if a number is unknown."""
    if isinstance(predicate, Combination):
        known = [_holds(part, values) for part in predicate.parts]
        return all(known) if predicate.operator == "and" else any(known)
    left, right = _number(predicate.left, values), _number(predicate.right, values)
    return bool(_RELATIONS[predicate.relation](left, right))


def _number(expression: Expression, values: Mapping[str, RecordedValue]) -> int:
    match expression:
        case Variable(name, dim):
            held = values[name]
            if isinstance(held, int) is not (dim is None):
                raise TypeError(f"{name} is {held}")
            return held if isinstance(held, int) else held[dim or 0]
        case Arithmetic(operation, left, right):
            number: int = _OPERATIONS[operation](_number(left, values), _number(right, values))
            return number
        case _:
            return expression
