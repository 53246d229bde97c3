"""Frames of the user's own code: their files, and the statements around their rows."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH111, PTH113, PTH118

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath, PurePosixPath, PureWindowsPath

from shapefix.diagnosis.error_reports import ErrorReport, StackFrame
from shapefix.diagnostics import Span
from shapefix.engine.parse_limits import LARGEST
from shapefix.sources.text import LARGEST_NOTEBOOK, Unreadable, is_notebook, read_bytes, source_of

_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3|[/\\][Ll]ib[/\\]\w+\.py$|^<")
"""Paths of libraries and of the standard library."""
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "env"})
_LONG_TEXT = 20
"""The fewest characters of a row that may have been cut by rich."""
_MOST_SEARCHED = 20_000
"""The most files that a search by the end of a path looks at."""


@dataclass(frozen=True)
class ProjectFrame:
    """A frame of the user's own code, and its place in the present file.

    span has the first and the last row of the innermost statement. is_changed is true if the text of the row
    is not the one in the traceback; is_missing if no file of the traceback's name exists here. is_region is
    true if span is a `try` body instead of a statement, for an error without a stack.
    """

    frame: StackFrame
    span: Span
    is_changed: bool = False
    is_missing: bool = False
    is_region: bool = False

    def covers(self, place: Span) -> bool:
        """Check whether a place is on the statement of this frame."""
        if self.is_missing or place.path != self.span.path:
            return False
        return place.row <= self.span.end_row and place.end_row >= self.span.row


def project_frames(report: ErrorReport, files: ProjectFiles) -> tuple[ProjectFrame, ...]:
    """Return the frames of the user's own code, outermost first.

    A path that does not exist is found by its end, among the files of the project.
    """
    found = []
    paths: dict[str, str | None] = {}
    for frame in report.frames:
        if is_installed(frame.path) or frame.cell is not None:
            continue
        if frame.path not in paths:
            paths[frame.path] = files.find(frame.path)
        path = paths[frame.path]
        if path is None:
            missing = Span(frame.path, frame.row, 1, frame.row, 1)
            found.append(ProjectFrame(frame, missing, is_missing=True))
        else:
            found.append(_placed(frame, path, files))
    return tuple(found)


def is_installed(path: str) -> bool:
    """Check whether a path is that of a library."""
    return bool(_INSTALLED.search(path))


def source_text(path: str) -> str:
    """Return the text of a file; "" if it cannot be read, or is too large to be analyzed."""
    try:
        return source_of(path, read_bytes(path, LARGEST_NOTEBOOK if is_notebook(path) else LARGEST)).text
    except Unreadable:
        return ""


class _Rows:
    """The rows of a file, and the rows of each text without its spaces."""

    def __init__(self, path: str) -> None:
        self.text = source_text(path)
        self._bare = ["".join(row.split()) for row in self.text.split("\n")]
        self._by_text: dict[str, list[int]] = {}
        for number, row in enumerate(self._bare, 1):
            self._by_text.setdefault(row, []).append(number)

    def has(self, number: int, text: str) -> bool:
        """Check for a text at a row; rich cuts long rows, and shows indentation as bars."""
        if not 0 < number <= len(self._bare):
            return False
        here, wanted = self._bare[number - 1], _bare(text)
        return here == wanted or (len(wanted) > _LONG_TEXT and here.startswith(wanted.rstrip("…")))

    def only_row_of(self, text: str) -> int | None:
        """Return the row with a text, if there is only one."""
        wanted = _bare(text)
        same = self._by_text.get(wanted, [])
        if len(wanted) > _LONG_TEXT:
            cut = wanted.rstrip("…")
            same = [number for number, row in enumerate(self._bare, 1) if row.startswith(cut)]
        return same[0] if len(same) == 1 else None


def _bare(text: str) -> str:
    return "".join(text.replace("│", "").split())


class ProjectFiles:
    """The files of a project by name, and their rows; each is read once."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._by_name: dict[str, list[str]] | None = None
        self._rows: dict[str, _Rows] = {}
        self._same: dict[tuple[str, str], int | None] = {}

    def find(self, path: str) -> str | None:
        """Return the existing file for a path of a traceback."""
        full = os.path.join(self._folder, os.path.expanduser(path))
        if os.path.isfile(full):
            return os.path.realpath(full)
        parts = (PureWindowsPath(path) if "\\" in path else PurePosixPath(path)).parts
        if not parts:
            return None
        if self._by_name is None:
            self._by_name = {}
            for parent, name in _walk(self._folder):
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

    def rows(self, path: str) -> _Rows:
        """Return the rows of a file."""
        if path not in self._rows:
            self._rows[path] = _Rows(path)
        return self._rows[path]

    def moved(self, path: str, text: str) -> int | None:
        """Return the only row of a file with a text."""
        if (path, text) not in self._same:
            self._same[path, text] = self.rows(path).only_row_of(text)
        return self._same[path, text]


def source_files(folder: str) -> Iterator[str]:
    """Yield the Python files below a folder, at most some thousands."""
    for parent, name in _walk(folder):
        if name.endswith(".py"):
            yield os.path.realpath(os.path.join(parent, name))


def _walk(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the folder and name of files, except those of environments and hidden folders."""
    seen = 0
    for parent, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if each not in _SKIPPED and not each.startswith(".")]
        seen += len(files)
        yield from ((parent, name) for name in sorted(files))
        if seen > _MOST_SEARCHED:
            return


def _placed(frame: StackFrame, path: str, files: ProjectFiles) -> ProjectFrame:
    """Return a frame with its statement; for a moved line the row of the same text."""
    rows = files.rows(path)
    row = frame.row
    changed = bool(frame.text) and not rows.has(row, frame.text)
    if changed:
        row = files.moved(path, frame.text) or row
    first, last = statement_rows(rows.text, row)
    return ProjectFrame(frame, Span(path, first, 1, last, 10_000), changed)


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
