"""Frames of the user's own code: their files, and the statements around their rows."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH111, PTH113, PTH118

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import PurePath, PurePosixPath, PureWindowsPath

from shapefix.diagnosis.error_reports import ErrorReport, StackFrame
from shapefix.diagnosis.notebook_cells import (
    MatchedCells,
    comparable,
    is_text_of,
    match_cells,
    read_cells,
    rows_before,
    shift_of,
)
from shapefix.diagnostics import Span, cell_of, path_of
from shapefix.engine.parse_limits import LARGEST
from shapefix.light_dataclasses import dataclass
from shapefix.sources.notebook_outputs import RunCell
from shapefix.sources.text import LARGEST_NOTEBOOK, SourceText, Unreadable, is_notebook, read_bytes, source_of

_INSTALLED = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3|[/\\][Ll]ib[/\\]\w+\.py$|^<|\.p(?:yx|xi)$"
)
"""Paths of libraries, of the standard library, and of compiled modules."""
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "env"})
MEASURED = frozenset({"<timed exec>", "<timed eval>", "<magic-timeit>"})
"""Paths of the code that `%time` and `%timeit` compile."""
_TIMED = re.compile(r"(?:[^#'\"]*=)?\s*%%?time(?:it)?\b")
_EXECUTED = "<string>"
_EXEC_OF_FILE = re.compile(r"""exec\(\s*open\(\s*["']([^"']+)["']""")
_COMPARED = 20
_MOST_READ = 200
"""The most files of a project that are read in a search for an origin."""
_MOST_SEARCHED = 20_000
"""The most files that a search by the end of a path looks at."""


@dataclass(frozen=True)
class ProjectFrame:
    """A frame of the user's own code, and its place in the present file.

    span has the first and the last row of the innermost statement, and row is the present number of the
    failing one. is_changed is true if the text at the row of the traceback is another one; is_lost if no
    other row has its text; is_missing if no file of the traceback's name exists here. is_region is true if
    span is a `try` body instead of a statement, for an error without a stack.
    """

    frame: StackFrame
    span: Span
    is_changed: bool = False
    is_missing: bool = False
    is_region: bool = False
    is_lost: bool = False
    row: int = 0

    def covers(self, place: Span) -> bool:
        """Check whether a place is on the statement of this frame."""
        if self.is_missing or place.path != self.span.path:
            return False
        return place.row <= self.span.end_row and place.end_row >= self.span.row


class FrameSources:
    """Finds the places of frames in the files and notebooks below a folder.

    notebook is the path of the one with the traceback in its outputs, and holder the number of that cell.
    """

    def __init__(self, folder: str, notebook: str | None = None, holder: int | None = None) -> None:
        self.folder = folder
        self.notebook = notebook
        self._holder = holder
        self._by_name: dict[str, list[str]] | None = None
        self._paths: dict[str, str | None] = {}
        self._texts: dict[str, str] = {}
        self._cells: dict[str, tuple[RunCell, ...]] = {}

    def held_by(self, holder: int) -> FrameSources:
        """Return the same sources for the traceback in another cell."""
        other = FrameSources(self.folder, self.notebook, holder)
        other._paths, other._cells, other._texts = self._paths, self._cells, self._texts
        return other

    def located(self, report: ErrorReport) -> ErrorReport:
        """Return an error with the rows of cells and files, in place of those of compiled parts of them.

        `%%time` compiles the rows below it, and `exec(open("train.py").read())` those of a file.
        """
        frames: list[StackFrame] = []
        matched = self._matched(report)
        outer = self._holding(report)
        place = 0
        for frame in report.frames:
            cell = matched.cells.get(frame.path) if matched is not None and frame.is_cell else None
            if cell is not None:
                shift = shift_of(cell.text, comparable(frame.quotes)) or 0
                if shift:
                    quoted = tuple((row + shift, text) for row, text in frame.quoted)
                    frame = replace(frame, row=frame.row + shift, quoted=quoted)
                outer, place = frame, len(frames)
            elif frame.path in MEASURED or frame.path == _EXECUTED:
                inner = self._compiled(frame, outer, matched)
                if inner.is_cell:
                    # The frames of the magic, and the call of it, are not the user's.
                    del frames[place:]
                    outer = None
                frame = inner
            elif not is_installed(frame.path):
                outer, place = frame, len(frames)
            frames.append(frame)
        return replace(
            report,
            frames=tuple(frames),
            earlier=tuple(map(self.located, report.earlier)),
            members=tuple(map(self.located, report.members)),
        )

    def _holding(self, report: ErrorReport) -> StackFrame | None:
        """Return the row of the magic around a stack without it, as earlier versions of IPython store it."""
        if not report.frames or report.frames[0].path not in MEASURED or self.notebook is None:
            return None
        for cell in self._read(self.notebook):
            if cell.number == self._holder:
                rows = cell.text.split("\n")
                magics = [number for number, row in enumerate(rows, 1) if _TIMED.match(row)]
                if len(magics) == 1:
                    text = rows[magics[0] - 1].strip()
                    return StackFrame(path_of(self.notebook, cell.number), magics[0], "", text, cell.count)
        return None

    def _compiled(
        self, frame: StackFrame, outer: StackFrame | None, matched: MatchedCells | None
    ) -> StackFrame:
        """Return the frame of a cell or file for one in a separately compiled part of it.

        outer is the user's frame around it.
        """
        if outer is None:
            return frame
        cell = matched.cells.get(outer.path) if matched is not None else None
        if cell is None and (place := cell_of(outer.path)) is not None:
            cell = next((each for each in self._read(place[0]) if each.number == place[1]), None)
        if cell is not None and (row := compiled_row(cell.text, frame, outer.row)) is not None:
            return replace(outer, row=row, text=cell.text.split("\n")[row - 1].strip(), quoted=())
        is_magic = cell is not None and cell.text.lstrip().startswith("%%")
        if not is_magic and (executed := _EXEC_OF_FILE.search(outer.text)) is not None:
            return replace(frame, path=executed[1], text="", quoted=())
        return frame

    def frames(self, report: ErrorReport) -> tuple[ProjectFrame, ...]:
        """Return the frames of the user's own code, outermost first.

        A path that does not exist is found by its end, a cell by its quoted lines and its execution count.
        """
        found = []
        matched = self._matched(report)
        for frame in report.frames:
            if frame.is_cell:
                cell = matched.cells.get(frame.path) if matched is not None else None
                if matched is None or cell is None:
                    found.append(_missing(frame))
                else:
                    path = path_of(matched.notebook, cell.number)
                    found.append(_placed(frame, path, cell.text, cell.code))
                continue
            if is_installed(frame.path):
                continue
            if frame.path not in self._paths:
                self._paths[frame.path] = self._find(frame.path)
            real = self._paths[frame.path]
            if real is None:
                found.append(_missing(frame))
                continue
            if real not in self._texts:
                self._texts[real] = source_text(real)
            found.append(_placed(frame, real, self._texts[real]))
        return tuple(found)

    def _find(self, path: str) -> str | None:
        """Return the existing file for a path of a traceback."""
        full = os.path.join(self.folder, os.path.expanduser(path))
        if os.path.isfile(full):
            return os.path.realpath(full)
        parts = (PureWindowsPath(path) if "\\" in path else PurePosixPath(path)).parts
        if not parts:
            return None
        if self._by_name is None:
            self._by_name = {}
            for parent, name in _walk(self.folder):
                self._by_name.setdefault(name, []).append(parent)
        best: list[str] = []
        longest = 0
        for parent in self._by_name.get(parts[-1], ()):
            candidate = os.path.realpath(os.path.join(parent, parts[-1]))
            own = PurePath(candidate).parts
            common = 0
            while common < min(len(own), len(parts)) and own[-1 - common] == parts[-1 - common]:
                common += 1
            if common > longest:
                best, longest = [candidate], common
            elif common == longest:
                best.append(candidate)
        return best[0] if len(best) == 1 else None

    def _matched(self, report: ErrorReport) -> MatchedCells | None:
        """Return the cells for the frames of an error, from the notebook with the best fit."""
        texts = [frame.text for frame in report.frames if frame.is_cell and frame.text]
        if self.notebook is not None:
            return match_cells(report.frames, self.notebook, self._read(self.notebook), self._holder)
        if not texts:
            return None
        # In the file the text is a part of a JSON string.
        written = [json.dumps(text.strip())[1:-1].encode() for text in texts]
        written += [json.dumps(text.strip(), ensure_ascii=False)[1:-1].encode() for text in texts]
        found = [
            match_cells(report.frames, path, self._read(path))
            for path in _notebooks(self.folder)
            if _has_any(path, written)
        ]
        found = [each for each in found if each.cells]
        best = max(((each.exact, len(each.cells)) for each in found), default=None)
        fitting = [each for each in found if (each.exact, len(each.cells)) == best]
        return fitting[0] if len(fitting) == 1 else None

    def _read(self, notebook: str) -> tuple[RunCell, ...]:
        if notebook not in self._cells:
            self._cells[notebook] = read_cells(notebook)
        return self._cells[notebook]


def compiled_row(text: str, frame: StackFrame, row: int) -> int | None:
    """Return the row of a cell for a frame in the code of its magic; None for other code.

    row is that of the call of the magic.
    """
    magic = text.lstrip()
    if frame.path not in MEASURED and not magic.startswith("%%prun"):
        return None
    if not magic.startswith("%%"):
        return row
    row = rows_before(text) + frame.row
    return row if frame.row and row <= len(text.split("\n")) else None


def _missing(frame: StackFrame) -> ProjectFrame:
    return ProjectFrame(frame, Span(frame.path, frame.row, 1, frame.row, 1), is_missing=True)


def file_of(path: str) -> str:
    """Return the path of a file, or of the notebook of a cell."""
    cell = cell_of(path)
    return path if cell is None else cell[0]


def is_installed(path: str) -> bool:
    """Check whether a path is that of a library."""
    return bool(_INSTALLED.search(path))


def source_files(folder: str) -> Iterator[str]:
    """Yield the Python files and notebooks below a folder, at most some thousands."""
    for parent, name in _walk(folder):
        if name.endswith(".py") or is_notebook(name):
            yield os.path.realpath(os.path.join(parent, name))


def _setting_files(folder: str) -> Iterator[str]:
    """Yield the files with settings below a folder."""
    for parent, name in _walk(folder):
        if name.endswith((".json", ".yaml", ".yml", ".toml", ".cfg", ".ini")):
            yield os.path.realpath(os.path.join(parent, name))


def searched_sources(folder: str) -> Iterator[str]:
    """Yield the Python files and notebooks below a folder for the search of an origin."""
    return islice(source_files(folder), _MOST_READ)


def searched_settings(folder: str) -> Iterator[str]:
    """Yield the files with settings below a folder for the search of an origin."""
    return islice(_setting_files(folder), _MOST_READ)


def _notebooks(folder: str) -> Iterator[str]:
    """Yield the notebooks below a folder."""
    for parent, name in _walk(folder):
        if is_notebook(name) and ".ipynb_checkpoints" not in parent:
            yield os.path.realpath(os.path.join(parent, name))


def _has_any(path: str, texts: Sequence[bytes]) -> bool:
    """Whether one of these texts is in a file."""
    try:
        data = read_bytes(path, LARGEST_NOTEBOOK)
    except Unreadable:
        return False
    return any(text in data for text in texts)


def _walk(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the folder and name of files, except those of environments and hidden folders."""
    seen = 0
    for parent, folders, files in os.walk(folder):
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        folders[:] = [each for each in folders if each not in _SKIPPED and not each.startswith(".")]
        seen += len(files)
        yield from ((parent, name) for name in sorted(files))
        if seen > _MOST_SEARCHED:
            return


def source(path: str) -> SourceText | None:
    """Return a file; None if it cannot be read, or is too large to be analyzed."""
    try:
        return source_of(path, read_bytes(path, LARGEST_NOTEBOOK if is_notebook(path) else LARGEST))
    except Unreadable:
        return None


def source_text(path: str) -> str:
    """Return the text of a file; "" if it cannot be read, or is too large to be analyzed."""
    found = source(path)
    return "" if found is None else found.text


def _placed(frame: StackFrame, path: str, text: str, code: str = "") -> ProjectFrame:
    """Return a frame with its statement; for a moved line the row of the same text.

    code is the Python of a cell whose rows have IPython's own syntax.
    """
    row = frame.row
    rows = _rows(text)
    # IPython shows a magic in its own words.
    is_here = not comparable([(row, frame.text)]) or is_text_of(rows, row, frame.text)
    moved = None if is_here else _only_row(text, frame.text)
    row = moved or row
    changed = not is_here or not all(is_text_of(rows, *each) for each in comparable(frame.quoted))
    first, last = statement_rows(code or text, row)
    is_lost = not is_here and moved is None
    return ProjectFrame(frame, Span(path, first, 1, last, 10_000), changed, is_lost=is_lost, row=row)


@lru_cache(maxsize=8)
def _rows(text: str) -> tuple[str, ...]:
    return tuple(text.split("\n"))


@lru_cache(maxsize=4_000)
def _only_row(text: str, wanted: str) -> int | None:
    """Return the row with a text, if there is only one."""
    rows = _rows(text)
    # A shorter text has to be the whole row.
    start = "".join(wanted.replace("│", "").split())[:_COMPARED]
    same = [number for number in _rows_by_start(text).get(start, ()) if is_text_of(rows, number, wanted)]
    return same[0] if len(same) == 1 else None


@lru_cache(maxsize=8)
def _rows_by_start(text: str) -> dict[str, list[int]]:
    """Return the numbers of the rows by their first characters, without spaces."""
    found: dict[str, list[int]] = {}
    for number, row in enumerate(_rows(text), 1):
        found.setdefault("".join(row.split())[:_COMPARED], []).append(number)
    return found


def statement_rows(text: str, row: int) -> tuple[int, int]:
    """Return the first and last row of the innermost statement at a row; of a compound one its header."""
    return _statements(text).get(row, (row, row))


@lru_cache(maxsize=8)
def _statements(text: str) -> dict[int, tuple[int, int]]:
    """Return the rows of the innermost statement at each row."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        first, last = node.lineno, node.end_lineno or node.lineno
        body = getattr(node, "body", None) or getattr(node, "cases", None)
        if body:
            start = body[0].pattern.lineno if isinstance(body[0], ast.match_case) else body[0].lineno
            last = max(first, start - 1) if start > first else first
        found.append((first, last))
    found.sort(key=lambda rows: rows[0] - rows[1])
    return {row: (first, last) for first, last in found for row in range(first, last + 1)}
