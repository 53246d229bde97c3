"""Cells are read in the order of the document, unless it cannot have run."""

from __future__ import annotations

import itertools

import pytest

from shapefix.sources.notebooks import Cell
from shapefix.sources.run_order import in_run_order

COUNTED = list[tuple[int | None, str]]


def _order(cells: COUNTED) -> list[int]:
    given = [Cell(number, text, count=count) for number, (count, text) in enumerate(cells, 1)]
    return [cell.number for cell in in_run_order(given)]


@pytest.mark.parametrize(
    ("cells", "order"),
    [
        ([(3, "print(x)"), (1, "x = 1")], [2, 1]),
        ([(3, "net = Net()"), (None, "# notes"), (1, "import torch"), (2, "class Net: pass")], [3, 4, 1, 2]),
        ([(5, "for i in rows: print(i)"), (2, "rows = [1]"), (6, "i")], [2, 1, 3]),
        ([(5, "@wrap\ndef f(): pass"), (2, "def wrap(f): return f")], [2, 1]),
    ],
)
def test_a_name_of_a_later_cell_needs_the_order_of_the_run(cells: COUNTED, order: list[int]) -> None:
    assert _order(cells) == order


@pytest.mark.parametrize(
    "cells",
    [
        # Nothing is missing: the author has run the cells in another order, but the document works.
        [(3, "x = 1"), (1, "print(x)")],
        # A function needs the name when it is called.
        [(3, "def f(): return x"), (1, "x = 1")],
        [(3, "f = lambda y: x + y"), (1, "x = 1")],
        # The counts are those of several sessions, or say nothing.
        [(3, "print(x)"), (3, "x = 1")],
        [(None, "print(x)"), (None, "x = 1")],
        [(2, "print(x)"), (5, "x = 1")],
        # Neither order can have run.
        [(4, "print(x)"), (2, "x = y"), (3, "y = 1"), (1, "z")],
        # Any name may come from a star import.
        [(3, "print(x)"), (2, "from m import *"), (1, "x = 1")],
        [(3, "[x for x in range(3)]"), (1, "x = 1")],
    ],
)
def test_otherwise_the_document_decides(cells: COUNTED) -> None:
    assert _order(cells) == list(range(1, len(cells) + 1))


def test_the_chosen_order_runs() -> None:
    """Every order of a program's cells is put right by the counts of its run."""
    program = [
        "import math",
        "a = math.pi",
        "def f(x):\n    return x + a",
        "b = f(a)",
        "c = [b for _ in range(2)]",
    ]
    for shuffled in itertools.permutations(enumerate(program, 1)):
        numbers = _order(list(shuffled))
        scope: dict[str, object] = {}
        for number in numbers:
            exec(shuffled[number - 1][1], scope)
        assert len(scope["c"]) == 2  # type: ignore[arg-type]
