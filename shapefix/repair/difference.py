"""Unified diffs of repairs, for `git apply -p0` and `patch`."""

from __future__ import annotations

import os
from collections.abc import Iterator

from shapefix.sources.row_difference import unified_rows

NO_NEWLINE = "\\ No newline at end of file\n"


def unified(path: str, old: str, new: str) -> Iterator[str]:
    r"""Return the lines of the unified diff from old to new, each with its newline; empty if equal.

    Only \n ends a line here, as for git: the carriage return of a CRLF file stays at the end of its line.
    """
    if old == new:
        return
    name = _quoted(path)
    yield from (f"--- {name}\n", f"+++ {name}\n")
    for line in unified_rows(_lines(old), _lines(new)):
        if line.endswith("\n"):
            yield line
        else:
            yield line + "\n"
            yield NO_NEWLINE


_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


def _quoted(path: str) -> str:
    """Quote a path with control characters or without an encoding, as git does."""
    if path.isprintable() and not set(path) & {'"', "\\"}:
        return path
    try:
        data = os.fsencode(path)
    except UnicodeEncodeError:
        data = path.encode("utf-8", "surrogatepass")
    written = "".join(
        f"\\{_ESCAPES[byte]}" if byte in _ESCAPES else chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"
        for byte in data
    )
    return f'"{written}"'


def _lines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    whole = [f"{line}\n" for line in lines]
    return [*whole, last] if last else whole
