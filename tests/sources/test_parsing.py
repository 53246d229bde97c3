"""Files that mix tabs and spaces, or that IPython runs, are read as their users read them."""

from __future__ import annotations

import ast

import libcst
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapefix.sources.parsing import parse_as_python

ABOVE = "def f(x):\n        if x:\n       \t    x = 1\n       \t    x = 2\n        return x\n"
BELOW = 'def f(x):\n    if x:\n\t    x = """\n\ty"""\n    return x\n'


@pytest.mark.parametrize("text", [ABOVE, BELOW])
def test_mixtures_that_python_reads(text: str) -> None:
    with pytest.raises(libcst.ParserSyntaxError):
        libcst.parse_module(text)
    assert program(parse_as_python(text, libcst.parse_module).code) == program(text)


@given(st.lists(st.text(" \t", max_size=9), min_size=2, max_size=4))
def test_every_tree_is_the_program_of_python(indents: list[str]) -> None:
    rows = ["if a:", *(f"{indent}if b{row}:" for row, indent in enumerate(indents)), "\t" * 9 + " " * 9 + "c"]
    text = "\n".join(rows) + "\n"
    try:
        expected = program(text)
        read = parse_as_python(text, libcst.parse_module)
    except (SyntaxError, libcst.ParserSyntaxError):
        # Python refuses it, or columns would have to move.
        return
    assert program(read.code) == expected


def program(text: str) -> str:
    return ast.dump(ast.parse(text))


def test_a_script_with_cells_may_have_magics() -> None:
    text = "# %%\n%cd ..\nx = 1\nif x:\n    !ls -l\n# %%\ny = x %2\n"
    read = parse_as_python(text, libcst.parse_module).code
    assert read == text.replace("%cd ..", "0     ").replace("!ls -l", "0     ")
    with pytest.raises(libcst.ParserSyntaxError):
        parse_as_python(text.replace("# %%", "# --"), libcst.parse_module)
