"""Checks what `reveal(x)` shows: the answer stands in the comment beside it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from checking import analyzed

from shapefix.engine.analysis import Analysis

NO_FILES: Mapping[str, str] = {}


def analysed(text: str, folder: Path, files: Mapping[str, str] = NO_FILES) -> Analysis:
    """The analysis of text as `main.py` in folder, with other files beside it."""
    for name, content in {**files, "main.py": text}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(content), encoding="utf-8")
    return analyzed(folder / "main.py", textwrap.dedent(text))


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
