"""Code of several lines on one line: still the same code, without gaps in its brackets."""

from __future__ import annotations

import ast

import pytest

from shapefix.interpreter.joined_lines import on_one_line


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("x.squeeze(\n    1)", "x.squeeze(1)"),
        ("f(\n    a,  # the first, (\n    b=2,\n)", "f(a, b=2)"),
        ("x[\n    1,\n]", "x[1,]"),
        ("(\n    a,\n)", "(a,)"),
        ("f(\n    (\n        a,\n    ),\n)", "f((a,))"),
        ("(x\n .view(2)\n .sum())", "(x.view(2).sum())"),
        ("f(\n    a +\n    b\n)", "f(a + b)"),
        ("f(1) + \\\n    2", "f(1) + 2"),
        ('f(\n    f"{x:>{y}}",\n    "two  words",\n)', 'f(f"{x:>{y}}", "two  words")'),
        ("[\n    {1: 2},\n    3,\n]", "[{1: 2}, 3,]"),
        ("f(a,  b)", "f(a, b)"),
    ],
)
def test_code_on_one_line_means_the_same(code: str, line: str) -> None:
    assert on_one_line(code) == line
    if '"' not in code:
        assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(line))


def test_what_is_no_code_is_joined_by_spaces() -> None:
    assert on_one_line('"""never\nclosed') == '"""never closed'
