"""The programs on the page of real bugs do what the page says."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

PAGE = Path(__file__).parents[2] / "shapefix" / "docs" / "real-bugs.md"
PROGRAM = re.compile(r"^## (.+?)$.*?^```python\n(.*?)^```\n\n```text\n(.*?)\n^```$", re.DOTALL | re.MULTILINE)
PROGRAMS = [found.groups() for found in PROGRAM.finditer(PAGE.read_text("utf-8"))]

_LIBRARY = re.compile(r"^(?:import|from) (?:lightning|transformers)\b", re.MULTILINE)
"""Their import takes seconds."""


def _outcome(program: str) -> str:
    """Return what a program prints, or the exception that ends it."""
    printed = io.StringIO()
    # Pickle looks a class up in its module.
    script = sys.modules["script"] = ModuleType("script")
    try:
        with contextlib.redirect_stdout(printed):
            exec(program, vars(script))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        del sys.modules["script"]
    return printed.getvalue()


def test_the_places_are_counted() -> None:
    text = PAGE.read_text("utf-8")
    places = re.findall(
        r"^- \[(.+?)\]\(https://github\.com/\1/blob/[0-9a-f]{40}/\S+\), `", text, re.MULTILINE
    )
    assert len(places) == text.count("\n- [") >= 40
    assert f" {len(places)} places in {len(set(places))} public repositories" in text


def test_each_part_of_the_page_has_a_program() -> None:
    assert len(PROGRAMS) == PAGE.read_text("utf-8").count("\n## ")


@pytest.mark.parametrize(
    ("program", "outcome"),
    [
        pytest.param(program, outcome, id=name, marks=[pytest.mark.slow] if _LIBRARY.search(program) else [])
        for name, program, outcome in PROGRAMS
    ],
)
def test_a_program_does_what_the_page_says(program: str, outcome: str) -> None:
    assert _outcome(program).startswith(outcome)
