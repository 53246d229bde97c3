"""Frames of the user's own code: their files, and the statements around their rows."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH111, PTH113, PTH118

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath, PurePosixPath, PureWindowsPath

from shapefix.diagnosis.error_reports import ErrorReport, StackFrame
from shapefix.diagnostics import Span
from shapefix.sources.text import Unreadable, read_source

_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3|[/\\][Ll]ib[/\\]\w+\.py$|^<")
"""Paths of libraries and of the standard library."""
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "env"})
_MOST_SEARCHED = 20_000
"""The most files that a search by the end of a path looks at."""


@dataclass(frozen=True)
class ProjectFrame:
    """A frame of the user's own code, and its place in the present file.

    span has the first and the last row of the innermost statement. is_changed is true if the text of the row
    is not the one in the traceback; is_missing if no file of the traceback's name exists here.
    """

    frame: StackFrame
    span: Span
    is_changed: bool = False
    is_missing: bool = False

    def covers(self, place: Span) -> bool:
        """Check whether a place is on the statement of this frame."""
        if self.is_missing or place.path != self.span.path:
            return False
        return place.row <= self.span.end_row and place.end_row >= self.span.row


def project_frames(report: ErrorReport, folder: str) -> tuple[ProjectFrame, ...]:
    """Return the frames of the user's own code, outermost first.

    A path that does not exist is found by its end, below folder.
    """
    found = []
    paths: dict[str, str | None] = {}
    for frame in report.frames:
        if is_installed(frame.path) or frame.cell is not None:
            continue
        if frame.path not in paths:
            paths[frame.path] = _file(frame.path, folder)
        path = paths[frame.path]
        if path is None:
            missing = Span(frame.path, frame.row, 1, frame.row, 1)
            found.append(ProjectFrame(frame, missing, is_missing=True))
        else:
            found.append(_placed(frame, path))
    return tuple(found)


def is_installed(path: str) -> bool:
    """Check whether a path is that of a library."""
    return bool(_INSTALLED.search(path))


def _file(path: str, folder: str) -> str | None:
    """Return the existing file for a path of a traceback."""
    full = os.path.join(folder, os.path.expanduser(path))
    if os.path.isfile(full):
        return os.path.realpath(full)
    parts = (PureWindowsPath(path) if "\\" in path else PurePosixPath(path)).parts
    best: list[str] = []
    longest = 0
    for candidate in _files(folder, parts[-1]):
        own = PurePath(candidate).parts
        common = 0
        while common < min(len(own), len(parts)) and own[-1 - common] == parts[-1 - common]:
            common += 1
        if common > longest:
            best, longest = [candidate], common
        elif common == longest:
            best.append(candidate)
    return best[0] if len(best) == 1 else None


def _files(folder: str, name: str) -> Iterator[str]:
    """Yield the files with this name below a folder."""
    seen = 0
    for parent, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if each not in _SKIPPED and not each.startswith(".")]
        seen += len(files)
        if name in files:
            yield os.path.realpath(os.path.join(parent, name))
        if seen > _MOST_SEARCHED:
            return


def _placed(frame: StackFrame, path: str) -> ProjectFrame:
    """Return a frame with its statement; for a moved line the row of the same text."""
    rows = _rows(path)
    row = frame.row
    changed = False
    if frame.text and not _is_text_of(rows, row, frame.text):
        same = [number for number in range(1, len(rows) + 1) if _is_text_of(rows, number, frame.text)]
        changed = True
        if len(same) == 1:
            row = same[0]
    first, last = statement_rows("\n".join(rows), row)
    return ProjectFrame(frame, Span(path, first, 1, last, 10_000), changed)


def _rows(path: str) -> Sequence[str]:
    try:
        return read_source(path).text.split("\n")
    except Unreadable:
        return ()


def _is_text_of(rows: Sequence[str], row: int, text: str) -> bool:
    """Whether a row has this text; rich cuts long rows, and shows indentation as bars."""
    if not 0 < row <= len(rows):
        return False
    here = "".join(rows[row - 1].split())
    wanted = "".join(text.replace("│", "").split())
    return here == wanted or (len(wanted) > 20 and here.startswith(wanted.rstrip("…")))


@lru_cache(maxsize=64)
def statement_rows(text: str, row: int) -> tuple[int, int]:
    """Return the first and last row of the innermost statement at a row; of a compound one its header."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return row, row
    best = (row, row)
    size = len(text)
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        first, last = node.lineno, node.end_lineno or node.lineno
        body = getattr(node, "body", None) or getattr(node, "cases", None)
        if body:
            start = body[0].pattern.lineno if isinstance(body[0], ast.match_case) else body[0].lineno
            last = max(first, start - 1) if start > first else first
        if first <= row <= last and last - first < size:
            best, size = (first, last), last - first
    return best
