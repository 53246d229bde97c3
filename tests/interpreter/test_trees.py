"""Trees for reading are libcst's own trees, with shared whitespace."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from shapefix.interpreter.modules import nodes
from shapefix.interpreter.positions import positions_of
from shapefix.interpreter.trees import tree_of

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [path.read_text("utf-8") for path in sorted((ROOT / "shapefix" / "tensors").glob("*.py"))]
ODD = [
    "",
    "\ufeffx = 1\n",
    "if x :\n\ty = ( 1,\n\n  2 ) # why\n\tpass ; z = lambda : 0\n",
    "f ( a , * b , ** c ) \\\n  . d [ 1 : 2 ]\r\n",
    "x = 1" + " " * 40 + "# far away",
]


@pytest.mark.parametrize("text", [*TEXTS, *ODD])
def test_the_tree_is_the_one_that_libcst_makes(text: str) -> None:
    ours, theirs = tree_of(text), cst.parse_module(text)
    assert ours.deep_equals(theirs)
    assert ours.code == theirs.code


@pytest.mark.parametrize("text", [*TEXTS, *ODD])
def test_all_but_whitespace_have_the_positions_of_the_tree_that_libcst_makes(text: str) -> None:
    assert _positions(tree_of(text)) == _positions(cst.parse_module(text))


def _positions(tree: cst.Module) -> list[tuple[str, object]]:
    where = MetadataWrapper(tree, unsafe_skip_copy=True).resolve(PositionProvider)
    found: list[tuple[str, object]] = []

    def visit(node: cst.CSTNode) -> None:
        if not isinstance(node, cst.SimpleWhitespace):
            found.append((type(node).__name__, where.get(node)))
        for child in node.children:
            visit(child)

    visit(tree)
    return found


@pytest.mark.parametrize("text", [*TEXTS, *ODD, 'x = """a\rb\n\n"""\n\n\n# end\n', "if x:\n  y = 1"])
def test_positions_are_those_of_libcst(text: str) -> None:
    tree = tree_of(text)
    theirs = MetadataWrapper(tree, unsafe_skip_copy=True).resolve(PositionProvider)
    ours = positions_of(tree)
    for node in nodes(tree):
        where = theirs[node]
        expected = (where.start.line, where.start.column, where.end.line, where.end.column)
        assert ours[id(node)] == expected


def test_libcst_is_left_as_it_was() -> None:
    with pytest.raises(cst.ParserSyntaxError):
        tree_of("def (:\n")
    assert cst.SimpleWhitespace("  ") is not cst.SimpleWhitespace("  ")
    with pytest.raises(cst.CSTValidationError):
        cst.SimpleWhitespace("no whitespace")
