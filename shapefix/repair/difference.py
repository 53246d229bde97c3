"""Unified diffs of repairs, for `git apply -p0` and `patch`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

NO_NEWLINE = "\\ No newline at end of file\n"


def unified(path: str, old: str, new: str) -> Iterator[str]:
    r"""Return the lines of the unified diff from old to new, each with its newline; empty if equal.

    Only \n ends a line here, as for git: the carriage return of a CRLF file stays at the end of its line.
    """
    header = (f"--- {path}\n", f"+++ {path}\n")
    for index, line in enumerate(difflib.unified_diff(_lines(old), _lines(new))):
        if index < len(header):
            yield header[index]
        elif line.endswith("\n"):
            yield line
        else:
            yield line + "\n"
            yield NO_NEWLINE


def _lines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    whole = [f"{line}\n" for line in lines]
    return [*whole, last] if last else whole
