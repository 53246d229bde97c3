"""The cells of a running session as a notebook in memory."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH109, PTH118

from __future__ import annotations

import ast
import json
import linecache
import os
import re
import warnings
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from shapefix.diagnosis.error_reports import StackFrame
from shapefix.diagnosis.notebook_cells import blank_rows, comparable, shift_of
from shapefix.diagnosis.project_frames import MEASURED, compiled_row, is_installed
from shapefix.diagnostics import path_of
from shapefix.ipython.live_values import is_module_level
from shapefix.sources.notebooks import python_cell

_NAME = "<session>.ipynb"
_INPUT = re.compile(r"<ipython-input-(\d+)-")


def session_path() -> str:
    """Return the path of the session's notebook, in the current folder: it imports the modules there."""
    return os.path.join(os.path.realpath(os.getcwd()), _NAME)


class SessionCells:
    """The executed cells of an IPython shell; the number of a cell is its execution count.

    Of a cell with an error only the statements before the failing one are kept.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._failed: dict[int, int] = {}

    def record(self, result: Any) -> None:
        """Remember the failing row of a cell: IPython calls this after each one."""
        count = getattr(result, "execution_count", None)
        if not isinstance(count, int) or getattr(result, "success", True):
            return
        error = getattr(result, "error_in_exec", None)
        typed = self.typed
        if error is not None and count < len(typed):
            self._failed[count] = _failing_row(error.__traceback__, typed[count])
        else:
            self._failed[count] = 1

    @property
    def typed(self) -> Sequence[str]:
        """The cells as typed, with an empty text for number 0."""
        history = getattr(self._shell, "history_manager", None)
        return list(getattr(history, "input_hist_raw", ()))

    @property
    def failed(self) -> Sequence[int]:
        """The numbers of the cells with an error, in order."""
        return sorted(self._failed)

    @property
    def last(self) -> int:
        """The number of the last cell, also of one in execution."""
        return max(len(self.typed) - 1, 0)

    def notebook(self, last: int, present: str | None = None) -> bytes:
        """Return the cells up to a number as a notebook.

        present replaces the text of the last one; the others end at their errors.
        """
        typed = self.typed
        cells = []
        for number in range(1, last + 1):
            text = typed[number] if number < len(typed) else ""
            if number == last:
                text = text if present is None else present
            elif number in self._failed:
                text = before_row(text, self._failed[number])
            cells.append(
                {
                    "cell_type": "code",
                    "execution_count": number,
                    "metadata": {},
                    "outputs": [],
                    "source": text,
                }
            )
        content = {"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4}
        return json.dumps(content).encode()

    def path(self, filename: str) -> str | None:
        """Return the path of the cell with this file name of its code; None for other files."""
        number = self._number_of(filename)
        return None if number is None else path_of(session_path(), number)

    def text(self, filename: str) -> str | None:
        """Return the text of a cell as its frames count its rows; None for other files."""
        number = self._number_of(filename)
        if number is None:
            return None
        compiled = "".join(linecache.getlines(filename))
        if "get_ipython().run_" not in compiled:
            return compiled
        return "".join(self.typed[number].splitlines(keepends=True)[blank_rows(self.typed[number]) :])

    def _number_of(self, filename: str) -> int | None:
        known = getattr(getattr(self._shell, "compile", None), "_filename_map", None)
        number: int
        if isinstance(known, dict) and filename in known:
            number = int(known[filename])
        else:
            found = _INPUT.match(filename)
            if found is None:
                return None
            number = int(found[1])
        typed = self.typed
        quoted = comparable(enumerate((row.rstrip("\n") for row in linecache.getlines(filename)), 1))
        likely: list[int] = [number, *range(len(typed) - 1, 0, -1)]
        # A magic such as %%capture runs the rest of its cell under another number.
        for each in likely:
            if each < len(typed) and shift_of(typed[each], quoted) is not None:
                return each
        return number


def _failing_row(traceback: TracebackType | None, text: str) -> int:
    """Return the row of a cell in a traceback: that of the first frame outside of libraries."""
    found = None
    while traceback is not None:
        code, row = traceback.tb_frame.f_code, traceback.tb_lineno
        name = code.co_filename
        if found is None:
            if is_module_level(code) and not is_installed(name.replace("<ipython-input", "")):
                found = row + blank_rows(text)
        elif name in MEASURED:
            return compiled_row(text, StackFrame(name, row), found) or found
        traceback = traceback.tb_next
    return found or 1


def before_row(text: str, row: int) -> str:
    """Return the statements of a cell before the one at a row."""
    code = python_cell(1, text).text
    rows = text.split("\n")
    if text.lstrip().startswith("%%") and not code.strip():
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    for statement in tree.body:
        if (statement.end_lineno or statement.lineno) >= row:
            decorators = [each.lineno for each in getattr(statement, "decorator_list", ())]
            return "\n".join(rows[: min([statement.lineno, *decorators]) - 1])
    return text
