"""Large literals are summarized before parsing: same values, same positions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from revealed import analysed, holds

from shapefix.interpreter.large_literals import condensed

ROWS = 4_000


@pytest.mark.parametrize(
    ("literal", "shown"),
    [
        ("[" + "1, " * 9_000 + "]", "i64[9000]"),
        ("[" + "-1.5, " * 9_000 + "]", "f32[9000]"),
        ("(" + "0, " * 9_000 + ")", "i64[9000]"),
        ("[" + "[1, 2, 3], " * ROWS + "]", f"i64[{ROWS}, 3]"),
        ("[" + "(1, 2.0), " * ROWS + "]", f"?[{ROWS}, 2]"),
        ("[\n" + "    [1e3, 2],  # a ( comment\n" * ROWS + "]", f"?[{ROWS}, 2]"),
        ("[[" + "1, " * 9_000 + "], [" + "2, " * 9_000 + "]]", "i64[2, 9000]"),
        ("[f(1), " + "[1, 2], " * ROWS + "]", "?[...] contiguous"),
        ("[" + "[1], [1, 2], " * ROWS + "]", "?[...] contiguous"),
        ("[" + "'a', " * 9_000 + "]", "?[...] contiguous"),
        ("[" + "1 + 1, " * 9_000 + "]", "i64[9000]"),
        ("[*x, " + "1, " * 9_000 + "]", "?[...] contiguous"),
    ],
    ids=lambda text: text[:12].replace("\n", " "),
)
def test_tensors_of_large_literals(tmp_path: Path, literal: str, shown: str) -> None:
    holds(f"import torch\nx = {literal}\ny = torch.tensor(x)\nreveal(y)  # {shown}\n", tmp_path)


def test_items_are_any_of_the_literal(tmp_path: Path) -> None:
    rows = "    ('a', 1, None),\n" * ROWS
    holds(
        f"x = [\n{rows}]\nreveal(len(x))  # {ROWS}\nfor name, number, nothing in x:\n"
        "    reveal(name)  # unknown\n    reveal(number)  # number\n    reveal(nothing)  # None\n",
        tmp_path,
    )


@pytest.mark.parametrize(
    "text",
    [
        "x = [{rows}]; y = 1\nz = 2\n",
        "x = (\n{rows}\n   ); y = 1\nz = 2\n",
        "x = f([\n  {rows} ], [{rows}]) + 1; y = 3\n",
        "x = {{'a': [{rows}], 'b': c}}; y = 1\n",
        "x = {{1: 'a', 2: [{rows}]}}; y = 1\n",
        "s = '''[\n{rows}]'''; y = [{rows}]; z = 1\n",
    ],
)
@pytest.mark.parametrize("rows", ["1, " * 9_000, "(1, 'é'), \n" * ROWS, "[-1.0, # (\n 2],\n\n" * ROWS])
def test_positions_stay_the_same(text: str, rows: str) -> None:
    text = text.format(rows=rows)
    short, literals = condensed(text)
    assert literals
    assert _names(short) == _names(text)


def _names(text: str) -> list[tuple[str, int, int]]:
    """All names outside of large literals, with their places."""
    nodes = ast.walk(ast.parse(text))
    found = [(node.id, node.lineno, node.col_offset) for node in nodes if isinstance(node, ast.Name)]
    return [each for each in found if not each[0].startswith("__large_literal_")]


@pytest.mark.parametrize(
    "text",
    [
        "x[" + "1, " * 9_000 + "]\n",
        "f(" + "1, " * 9_000 + ")\n",
        "x = (" + "'a' " * 9_000 + ")\n",
        "x = [" + "a, " * 9_000 + "]\n",
        "x = '" + "[1, 2], " * 9_000 + "'\n",
        "# [" + "1, " * 9_000 + "]\n",
        "x = [" + "1, " * 9_000,
        "x = [" + "1, " * 100 + "]\n" + "y = 1\n" * 10_000,
    ],
    ids=lambda text: text[:12],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert condensed(text) == (text, {})


def test_a_finding_after_a_literal_is_at_its_place(tmp_path: Path) -> None:
    text = "import torch\nx = [\n" + "    [1, 2],\n" * ROWS + "]; y = torch.zeros(2).view(3)\n"
    spans = [found.span for found in analysed(text, tmp_path).diagnostics]
    assert [(span.row, span.column) for span in spans] == [(ROWS + 3, 8)]
