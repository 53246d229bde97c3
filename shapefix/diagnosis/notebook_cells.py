"""Find the cells of a notebook for the frames of a traceback."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shapefix.diagnosis.error_reports import StackFrame
from shapefix.diagnostics import cell_of
from shapefix.light_dataclasses import dataclass
from shapefix.sources.notebook_outputs import RunCell, run_cells
from shapefix.sources.text import LARGEST_NOTEBOOK, Unreadable, read_bytes

_LIKE_TEXT = 0.5
"""The smallest share of the quoted lines in an edited cell."""


@dataclass(frozen=True)
class MatchedCells:
    """The cells of a notebook for the paths of frames, and the number of paths with all lines unchanged."""

    notebook: str
    cells: Mapping[str, RunCell]
    exact: int


def read_cells(path: str) -> tuple[RunCell, ...]:
    """Return the cells of a notebook, none if it cannot be read."""
    try:
        return run_cells(read_bytes(path, LARGEST_NOTEBOOK))
    except Unreadable:
        return ()


def match_cells(
    frames: Sequence[StackFrame], notebook: str, cells: Sequence[RunCell], holder: int | None = None
) -> MatchedCells:
    """Match the frames of cells with the cells of a notebook.

    holder is the number of the cell with the traceback in its outputs: the run began there.
    """
    quotes: dict[str, list[tuple[int, str]]] = {}
    marked: dict[str, list[tuple[int, str]]] = {}
    counts: dict[str, int | None] = {}
    for frame in frames:
        if frame.is_cell:
            quotes.setdefault(frame.path, []).extend(comparable(frame.quotes))
            marked.setdefault(frame.path, []).extend(comparable(((frame.row, frame.text),)))
            counts[frame.path] = frame.cell
    found: dict[str, RunCell] = {}
    exact = 0
    for number, (path, quoted) in enumerate(quotes.items()):
        same = [cell for cell in cells if quoted and _is_same(cell, quoted)]
        count, place = counts[path], cell_of(path)
        by_number = holder if number == 0 and holder is not None else place[1] if place else None
        named = [
            cell
            for cell in cells
            if (
                cell.number == by_number
                if by_number is not None
                else count is not None and cell.count == count
            )
        ]
        chosen = [cell for cell in named if cell in same] or same
        if len(chosen) == 1:
            exact += 1
        elif place is not None and not quoted and len(named) == 1:
            chosen = named
        else:
            like = _alike(cells, quoted, marked[path])
            chosen = [cell for cell in named if cell in like or holder is not None] or like
        if len(chosen) == 1:
            found[path] = chosen[0]
    return MatchedCells(notebook, found, exact)


def is_text_of(rows: Sequence[str], row: int, text: str) -> bool:
    """Check for a text in a row; rich cuts long rows, and shows indentation as bars."""
    if not 0 < row <= len(rows):
        return False
    here = "".join(rows[row - 1].split())
    wanted = "".join(text.replace("│", "").split())
    return here == wanted or (len(wanted) > 20 and here.startswith(wanted.rstrip("…")))


def comparable(quoted: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Drop rows of magics: IPython shows them in its own words."""
    return [each for each in quoted if "get_ipython()" not in each[1] and each[1].strip()]


def blank_rows(text: str) -> int:
    """Return the number of empty rows at the start of a cell."""
    return _blank(text.split("\n"))


def rows_before(text: str) -> int:
    """Return the number of rows before the code of a cell: empty ones, and that of its magic."""
    rows = text.split("\n")
    first = _blank(rows)
    if rows[first].lstrip().startswith("%%"):
        return first + 1 + _blank(rows[first + 1 :])
    return first


def shift_of(text: str, quoted: Sequence[tuple[int, str]]) -> int | None:
    """Return the number to add to quoted rows for those of a cell; None if it has other rows.

    IPython counts without empty rows at the start, and some magics run the rows below them as a cell.
    """
    rows = text.split("\n")
    for shift in dict.fromkeys((0, _blank(rows), rows_before(text))):
        if all(is_text_of(rows, row + shift, text) for row, text in quoted):
            return shift
    return None


def _blank(rows: Sequence[str]) -> int:
    return next((number for number, row in enumerate(rows) if row.strip()), 0)


def _is_same(cell: RunCell, quoted: Sequence[tuple[int, str]]) -> bool:
    return shift_of(cell.text, quoted) is not None


def _alike(
    cells: Sequence[RunCell], quoted: Sequence[tuple[int, str]], marked: Sequence[tuple[int, str]]
) -> list[RunCell]:
    """Return the cells with a marked line and most of the quoted lines, at any row; only the best ones."""
    shares: list[tuple[float, RunCell]] = []
    for cell in cells:
        here = {"".join(row.split()) for row in cell.text.split("\n")}
        if not any("".join(text.split()) in here for _, text in marked):
            continue
        share = sum("".join(text.split()) in here for _, text in quoted) / len(quoted)
        if share >= _LIKE_TEXT:
            shares.append((share, cell))
    best = max((share for share, _ in shares), default=0.0)
    return [cell for share, cell in shares if share == best]
