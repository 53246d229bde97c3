"""The text of a file after the edits of one fix, and the rows of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from shapefix.diagnostics import Edit, Fix, Span

_NEWLINE = re.compile(r"\r\n|\r|\n")


def rows_of(text: str) -> list[str]:
    """Return the rows of a text, without their newlines."""
    return _NEWLINE.split(text)


def edited_text(fix: Fix, text: str) -> str | None:
    """Return the text after a fix in one file; None if its edits are not in the text, or overlap."""
    edits = _edits(fix, text)
    return None if edits is None else _spliced(edits, text, 0, len(text))


def joined_edit(fix: Fix, text: str) -> Edit | None:
    """Return one edit with the effect of all edits of a fix in one file; None as in edited_text."""
    edits = _edits(fix, text)
    if edits is None:
        return None
    start, end = edits[0][0], edits[-1][1]
    first, last = min(fix.edits, key=_start).span, max(fix.edits, key=_start).span
    span = Span(first.path, first.row, first.column, last.end_row, last.end_column)
    return Edit(span, _spliced(edits, text, start, end))


_Replacement = tuple[int, int, str]


def _start(edit: Edit) -> tuple[int, int]:
    return edit.span.row, edit.span.column


def _edits(fix: Fix, text: str) -> list[_Replacement] | None:
    """Return the edits by their offsets in the text, in its order."""
    if len({edit.span.path for edit in fix.edits}) != 1:
        return None
    starts = _row_starts(text)
    found = []
    for edit in sorted(fix.edits, key=_start):
        start = _offset(starts, edit.span.row, edit.span.column)
        end = _offset(starts, edit.span.end_row, edit.span.end_column)
        if start is None or end is None or start > end:
            return None
        found.append((start, end, edit.content))
    overlap = any(before[1] > after[0] for before, after in pairwise(found))
    return None if overlap else found


@lru_cache(maxsize=4)
def _row_starts(text: str) -> Sequence[int]:
    return [0, *(newline.end() for newline in _NEWLINE.finditer(text)), len(text) + 1]


def _offset(starts: Sequence[int], row: int, column: int) -> int | None:
    # The row after the last one is the end of the text.
    if row == len(starts) and column == 1:
        return starts[-1] - 1
    if not 1 <= row < len(starts):
        return None
    offset = starts[row - 1] + column - 1
    return offset if offset < starts[row] else None


def _spliced(edits: Sequence[_Replacement], text: str, start: int, end: int) -> str:
    """Return the text from start to end, with the edits in it."""
    pieces, at = [], start
    for first, last, content in edits:
        pieces += [text[at:first], content]
        at = last
    return "".join([*pieces, text[at:end]])
