"""Sizes fixed by a test on the way: one row after `if batch != 1: raise`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

import libcst as cst

from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.values import Constant, Integer, Value
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import substitute
from shapefix.tensors.symbols import Symbol


@dataclass(eq=False, slots=True)
class FixedSizes:
    """Tests of sizes against numbers, and the sizes on the running path."""

    tests: dict[cst.CSTNode, tuple[Symbol, int]] = field(default_factory=dict)
    """The size and the number in a comparison for equality."""
    numbers: dict[Any, Any] = field(default_factory=dict)
    """Numbers as Constants, by the symbols of the sizes; written through the journal."""


def note_equality(ev: Evaluator, node: cst.CSTNode, left: Value, right: Value) -> None:
    """Note the operands of an open comparison at node, if they are a size and a number."""
    if isinstance(left, Constant):
        left, right = right, left
    if isinstance(left, Integer) and isinstance(right, Constant) and type(right.value) is int:
        symbol = left.size.only_symbol
        if symbol is not None:
            ev.state[FixedSizes].tests[node] = (symbol, right.value)


def fix_size(ev: Evaluator, test: cst.Comparison, outcome: bool) -> None:
    """Fix the size in a comparison for equality, if its outcome states the number."""
    operator = test.comparisons[0].operator
    if not isinstance(operator, cst.Equal if outcome else cst.NotEqual):
        return
    known = ev.state[FixedSizes].tests.get(test)
    if known is not None:
        symbol, number = known
        ev.journal.write(ev.state[FixedSizes].numbers, symbol, Constant(number))


def with_fixed(ev: Evaluator, sizes: Iterable[Size]) -> list[Size]:
    """Replace the symbols of fixed sizes by their numbers."""
    held = ev.state[FixedSizes].numbers
    if not held:
        return list(sizes)
    numbers = {
        symbol: number.value
        for symbol, number in held.items()
        if isinstance(number, Constant) and not ev.journal.is_maybe_unbound(held, symbol)
    }
    return [_substituted(size, numbers) for size in sizes]


def _substituted(size: Size, numbers: dict[Symbol, int]) -> Size:
    try:
        return substitute(size, numbers)
    except ZeroDivisionError:
        return size
