"""The source of a script with other literals in it, for this run only."""

from __future__ import annotations

from collections.abc import Iterable


def rewritten(source: bytes, edits: Iterable[str]) -> bytes:
    """A source with each edit made: `row:start:end:text`, the row from 1, the offsets in bytes from 0."""
    rows = source.splitlines(keepends=True)
    for row, start, end, text in sorted((_read(each) for each in edits), reverse=True):
        line = rows[row - 1]
        rows[row - 1] = line[:start] + text.encode() + line[end:]
    return b"".join(rows)


def _read(edit: str) -> tuple[int, int, int, str]:
    row, start, end, text = edit.split(":", 3)
    return int(row), int(start), int(end), text
