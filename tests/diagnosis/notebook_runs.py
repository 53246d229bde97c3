"""Runs the cells of a notebook in this process, and stores the error of the last one as Jupyter does."""

from __future__ import annotations

import json
import linecache
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class CellFrame:
    """A frame in a cell: its execution count, row, function, and the source of the cell."""

    count: int
    row: int
    function: str
    source: str

    @property
    def is_module(self) -> bool:
        return self.function == "<module>"

    def shown(self, colors: bool = False) -> list[str]:
        """Return the lines around the row with an arrow, as IPython prints them."""
        lines = []
        rows = self.source.split("\n")
        for number in range(max(1, self.row - 2), min(len(rows), self.row + 2) + 1):
            start = f"----> {number}" if number == self.row else f"      {number}"
            text = f"\x1b[31m{rows[number - 1]}\x1b[39m" if colors else rows[number - 1]
            lines.append(f"{start} {text}")
        return lines


def _ipython_9(frame: CellFrame) -> str:
    where = "" if frame.is_module else f", in {frame.function}(x)"
    head = f"\x1b[36mCell\x1b[39m\x1b[36m \x1b[39m\x1b[32mIn[{frame.count}]\x1b[39m"
    return f"{head}\x1b[32m, line {frame.row}\x1b[39m{where}"


def _ipython_8(frame: CellFrame) -> str:
    where = f"<cell line: {frame.row}>" if frame.is_module else frame.function
    return f"Input In [{frame.count}], in {where}()"


def _ipython_7(frame: CellFrame) -> str:
    return f"<ipython-input-{frame.count}-f53f56293d83> in {frame.function}(x)"


def _kernel_file(frame: CellFrame) -> str:
    return f"/tmp/ipykernel_31/{1000 + frame.count}.py in {frame.function}(x)"


def _colab(frame: CellFrame) -> str:
    return f"/tmp/ipython-input-{2000 + frame.count}.py in <cell line: 0>()"


def _vs_code(frame: CellFrame) -> str:
    # Its number counts all cells; the notebooks of these tests begin with a text cell.
    return f"c:\\Users\\ana\\train.ipynb Cell {frame.count + 1} in <cell line: {frame.row}>()"


FORMS: dict[str, Callable[[CellFrame], str]] = {
    "IPython 9": _ipython_9,
    "IPython 8": _ipython_8,
    "IPython 7": _ipython_7,
    "ipykernel": _kernel_file,
    "Colab": _colab,
    "VS Code": _vs_code,
}


def write_notebook(path: Path, cells: Sequence[str], counts: Sequence[int | None] = ()) -> dict[str, Any]:
    """Write a notebook with a text cell before the code cells, and return its content."""
    counts = counts or [None] * len(cells)
    code: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "execution_count": count,
            "metadata": {},
            "outputs": [],
            "source": cell.splitlines(keepends=True),
        }
        for cell, count in zip(cells, counts, strict=True)
    ]
    content = {
        "cells": [{"cell_type": "markdown", "metadata": {}, "source": ["# Title"]}, *code],
        "metadata": {"kernelspec": {"language": "python"}},
        "nbformat": 4,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    return content


def run_cells(cells: Sequence[str], form: str) -> tuple[str, str, list[str]]:
    """Run cells until one raises; return type and message of the exception, and its traceback."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    sources: dict[str, tuple[int, str]] = {}
    for count, cell in enumerate(cells, 1):
        name = f"<cell of a test {count}>"
        sources[name] = count, cell
        linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
        try:
            exec(compile(cell, name, "exec"), scope)
        except Exception as error:
            return type(error).__name__, str(error), _traceback(error, sources, form)
    raise AssertionError("no cell raises")


def _traceback(error: Exception, sources: dict[str, tuple[int, str]], form: str) -> list[str]:
    kind = type(error).__name__
    lines = ["-" * 75, f"{kind}{'Traceback (most recent call last)':>{75 - len(kind)}}"]
    for each in traceback.extract_tb(error.__traceback__):
        if each.filename in sources:
            count, source = sources[each.filename]
            frame = CellFrame(count, each.lineno or 0, each.name, source)
            lines += [FORMS[form](frame), *frame.shown(colors=form == "IPython 9"), ""]
        elif "site-packages" in each.filename:
            lines += [
                f"File {each.filename}:{each.lineno}, in {each.name}(x)",
                f"---> {each.lineno} {each.line}",
                "",
            ]
    return "\n".join([*lines, f"{kind}: {error}"]).split("\n")


def store_error(path: Path, cells: Sequence[str], form: str = "IPython 9") -> list[str]:
    """Write a notebook with the error of its run in the outputs, and return the traceback."""
    kind, message, lines = run_cells(cells, form)
    content = write_notebook(path, cells, list(range(1, len(cells) + 1)))
    held = next(cell for cell in cells if _fails(cells, cell))
    output = {"output_type": "error", "ename": kind, "evalue": message, "traceback": lines}
    content["cells"][cells.index(held) + 1]["outputs"] = [output]
    path.write_text(json.dumps(content, indent=1) + "\n")
    return lines


def _fails(cells: Sequence[str], cell: str) -> bool:
    scope: dict[str, Any] = {"__name__": "__main__"}
    for each in cells:
        try:
            exec(compile(each, "<cell>", "exec"), scope)
        except Exception:
            return each == cell
    return False
