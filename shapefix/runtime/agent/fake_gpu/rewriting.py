"""Replace numbers in the source of a script, for one run."""

from __future__ import annotations

from collections.abc import Iterable


def apply_edits(source: bytes, edits: Iterable[str]) -> bytes:
    """Apply edits `row:start:end:text` to a source; rows count from 1, offsets in bytes from 0."""
    rows = source.splitlines(keepends=True)
    for row, start, end, text in sorted((_read(each) for each in edits), reverse=True):
        line = rows[row - 1]
        rows[row - 1] = line[:start] + text.encode() + line[end:]
    return b"".join(rows)


def _read(edit: str) -> tuple[int, int, int, str]:
    row, start, end, text = edit.split(":", 3)
    return int(row), int(start), int(end), text
