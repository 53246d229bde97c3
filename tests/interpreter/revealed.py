"""Checks what `reveal(x)` shows: the answer stands in the comment beside it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from shapefix.checks.rules import RULES
from shapefix.engine.analysis import Analysis, Analyst
from shapefix.sources.project import Project
from shapefix.sources.text import SourceText

NO_FILES: Mapping[str, str] = {}


def analysed(text: str, folder: Path, files: Mapping[str, str] = NO_FILES) -> Analysis:
    """The analysis of text as `main.py` in folder, with other files beside it."""
    for name, content in {**files, "main.py": text}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(content), encoding="utf-8")
    script = str(folder / "main.py")
    source = SourceText(script, textwrap.dedent(text))
    return Analyst(Project(str(folder)), frozenset(RULES)).analyse(script, source)


def holds(text: str, folder: Path, files: Mapping[str, str] = NO_FILES) -> None:
    """Each `reveal(x)  # answer` of text shows that answer; answers of the same place are parted by `;`.

    A line that is not run, or not followed, shows nothing: `reveal(x)  #`.
    """
    text = textwrap.dedent(text)
    analysis = analysed(text, folder, files)
    assert not analysis.failures, analysis.failures
    shown: dict[int, list[str]] = {}
    for answer in analysis.reveals:
        shown.setdefault(answer.span.row, []).append(answer.message)
    rows = {
        row: line.rpartition("#")[2].strip()
        for row, line in enumerate(text.splitlines(), 1)
        if "reveal(" in line
    }
    assert {row: "; ".join(shown.get(row, [])) for row in rows} == rows
