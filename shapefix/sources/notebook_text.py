"""Notebooks as one text for the analysis: the Python of all cells, one after another, and back again."""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import pairwise

from shapefix.light_dataclasses import dataclass
from shapefix.sources.json_spans import cell_sources
from shapefix.sources.notebooks import Cell, cells
from shapefix.sources.run_order import in_run_order
from shapefix.sources.text import SourceText, Unreadable, rows_of

_INDENTED = "if 1:  "
"""Before the row with the number of a cell, if all rows of the cell are indented."""


@dataclass(frozen=True)
class BrokenCell:
    """A cell with a syntax error; row and column count from 1."""

    number: int
    message: str
    row: int
    column: int


@dataclass(frozen=True)
class CellText:
    """The Python of one cell: number is that of the cell in the notebook, first_row its row in the text."""

    number: int
    first_row: int
    text: str


@dataclass(frozen=True)
class NotebookText(SourceText):
    """The Python of a notebook's cells, each after a row with its number.

    original is the content of the file, and unedited the text of it. text may be edited: encode changes the
    source of the edited cells, and no other byte of the file. The rows of broken cells are empty. marker
    begins the rows between cells.
    """

    original: bytes = b""
    unedited: str = ""
    marker: str = "# %% cell"
    broken: tuple[BrokenCell, ...] = ()

    @cached_property
    def cells(self) -> tuple[CellText, ...]:
        """The cells of the text in its present state."""
        found: list[CellText] = []
        rows = rows_of(self.text)
        starts = [place for place, row in enumerate(rows) if self._number(row) is not None]
        for start, end in pairwise([*starts, len(rows)]):
            number = self._number(rows[start])
            assert number is not None
            # What a repair has put before the first cell belongs to it.
            before = rows[: starts[0]] if start == starts[0] else []
            found.append(CellText(number, start + 2, "".join(before + rows[start + 1 : end])))
        return tuple(found)

    @cached_property
    def _first_rows(self) -> tuple[int, ...]:
        """The first row of each cell in the text."""
        return tuple(cell.first_row for cell in self.cells)

    def _number(self, row: str) -> int | None:
        row = row.removeprefix(_INDENTED)
        number = row.removeprefix(self.marker).strip()
        return int(number) if row.startswith(f"{self.marker} ") and number.isdecimal() else None

    def place(self, row: int) -> tuple[int, int]:
        """Return the cell of a row of the text, and the row in the cell."""
        at = bisect_right(self._first_rows, row) - 1
        cell = self.cells[max(at, 0)]
        return cell.number, max(row - cell.first_row + 1, 1)

    def row(self, broken: BrokenCell) -> int:
        """Return the row of a syntax error in the text."""
        first = next(cell.first_row for cell in self.cells if cell.number == broken.number)
        return first + broken.row - 1

    def cell(self, number: int) -> str | None:
        """Return the text of a cell, None without one of this number."""
        return next((cell.text for cell in self.cells if cell.number == number), None)

    def with_cells(self, texts: Mapping[int, str]) -> NotebookText:
        """Return the notebook with other texts of some cells, by their numbers."""
        rows = rows_of(self.text)
        made: list[str] = []
        for cell in self.cells:
            made.append(rows[cell.first_row - 2])
            text = texts.get(cell.number, cell.text)
            made.append(text if not text or text.endswith(("\n", "\r")) else text + "\n")
        return replace(self, text="".join(made))

    def encode(self) -> bytes:
        """Return the notebook with the edited cells. Raises Unreadable for an edited magic."""
        before = {cell.number: cell.text for cell in replace(self, text=self.unedited).cells}
        changed = {cell.number: cell.text for cell in self.cells if before.get(cell.number) != cell.text}
        if not changed:
            return self.original
        text = self.original.decode("utf-8")
        escaped = text.isascii() and re.search(r"\\u00[89a-f]|\\u0[1-9a-f]|\\u[1-9a-f]", text) is not None
        pieces, done = [], 0
        for number, source in cell_sources(text):
            if number in changed:
                rows = _edited(source.text, before[number], changed[number])
                pieces += [text[done : source.start], source.written(rows, ascii_only=escaped)]
                done = source.end
        return "".join([*pieces, text[done:]]).encode("utf-8")


def read_notebook(path: str, data: bytes) -> NotebookText:
    """Read the Python cells of a notebook as one text. Raises Unreadable."""
    found = in_run_order(cells(data))
    marker = "# %% cell"
    while any(row.removeprefix(_INDENTED).startswith(marker) for cell in found for row in rows_of(cell.text)):
        marker += "_"
    broken: list[BrokenCell] = []
    pieces: list[str] = []
    for cell in found:
        error, before = _syntax_error(cell), ""
        rows = cell.text
        if error is not None and _is_indented(cell):
            error, before = None, _INDENTED
        if error is not None:
            broken.append(error)
            rows = "\n" * len(rows_of(rows))
        if rows and not rows.endswith(("\n", "\r")):
            rows += "\n"
        pieces.append(f"{before}{marker} {cell.number}\n{rows}")
    text = "".join(pieces)
    return NotebookText(path, text, original=data, unedited=text, marker=marker, broken=tuple(broken))


def _is_indented(cell: Cell) -> bool:
    """Whether a cell is Python but for an indentation of all of its rows, removed by IPython.

    Below `if 1:` the rows keep their columns.
    """
    first = next((row for row in rows_of(cell.text) if row.strip()), "")
    return first[:1] in (" ", "\t") and _syntax_error(replace(cell, text=f"if 1:\n{cell.text}")) is None


def _syntax_error(cell: Cell) -> BrokenCell | None:
    """Return the syntax error of a cell; IPython accepts `await` outside of functions."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(cell.text, "<cell>", "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        if "f-string" in error.msg and _is_newer_python(cell.text):
            return None
        return BrokenCell(cell.number, error.msg, error.lineno or 1, error.offset or 1)
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return BrokenCell(cell.number, str(error) or type(error).__name__, 1, 1)
    return None


def _is_newer_python(text: str) -> bool:
    """Whether the f-strings of a cell are those of Python 3.12, in an older one: `f"{row["x"]}"`."""
    import libcst

    try:
        libcst.parse_module(text)
    except (libcst.ParserSyntaxError, RecursionError):
        return False
    return True


def _edited(raw: str, before: str, after: str) -> list[str]:
    """Return the rows of a cell's source after an edit of its Python; raw is its source with magics.

    Raises Unreadable if the edit touches a row with IPython's own syntax.
    """
    old, new = rows_of(before), rows_of(after)
    given = rows_of(raw)
    rows: list[str] = []
    for kind, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            rows += given[first:last]
            continue
        if _without_ends(given[first:last]) != _without_ends(old[first:last]):
            raise Unreadable("the repair would change a row with a magic or a shell command")
        rows += new[start:end]
    # The last row of a cell has no newline; those before it have one.
    ended = [row if row.endswith(("\n", "\r")) else row + "\n" for row in rows[:-1]]
    last_row = rows[-1:] if raw.endswith(("\n", "\r")) else [row.rstrip("\r\n") for row in rows[-1:]]
    return ended + last_row


def _without_ends(rows: list[str]) -> list[str]:
    return [row.rstrip("\r\n") for row in rows]
