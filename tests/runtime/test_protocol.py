"""Test that the agent writes, and the probe reads, every kind of line."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from shapefix.runtime import protocol
from shapefix.runtime.protocol import Line, kind_of

RUNTIME = Path(__file__).resolve().parents[2] / "shapefix" / "runtime"
AGENT, PROTOCOL = RUNTIME / "agent", RUNTIME / "protocol"
CLASSES = {each.__name__: each for each in get_args(Line)}
KINDS = {kind_of(each): name for name, each in CLASSES.items()}


def trees(*, agent: bool) -> Iterator[ast.Module]:
    for path in sorted(RUNTIME.rglob("*.py")):
        if path.is_relative_to(AGENT) == agent and not path.is_relative_to(PROTOCOL):
            yield ast.parse(path.read_text("utf-8"))


def written() -> set[str]:
    """The classes of lines that the agent creates."""
    calls = (node for tree in trees(agent=True) for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)} & CLASSES.keys()


def read() -> set[str]:
    """The classes of lines that the probe requests, or tells apart by their kind."""
    found: set[str] = set()
    for tree in trees(agent=False):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                argument = node.args[0]
                if node.func.attr in ("of", "first", "_of") and isinstance(argument, ast.Name):
                    found.add(argument.id)
            elif isinstance(node, ast.Compare) and ast.unparse(node.left) == "line['kind']":
                compared = node.comparators[0]
                if isinstance(compared, ast.Constant):
                    found.add(KINDS[str(compared.value)])
    return found & CLASSES.keys()


def test_every_line_is_written_and_read() -> None:
    assert written() == CLASSES.keys()
    assert read() == CLASSES.keys()


def test_every_class_of_lines_has_a_kind_of_its_own() -> None:
    classes = {name for name in vars(protocol) if name.endswith("Line")} - {"Line", "AnyLine"}
    assert classes == CLASSES.keys()
    assert len(KINDS) == len(CLASSES)


@pytest.mark.parametrize("flag", ["-S", "-E"])
def test_the_protocol_needs_no_installed_package(flag: str) -> None:
    code = "import sys; sys.path[:0] = sys.argv[1:]; import protocol; assert 'shapefix' not in sys.modules"
    command = [sys.executable, "-I", flag, "-c", code, str(RUNTIME)]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""
