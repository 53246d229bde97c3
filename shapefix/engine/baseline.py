"""A baseline: the findings accepted in a project, recognized by their text and not by their line."""

# ruff: noqa: PTH105

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from shapefix.diagnostics import Diagnostic, cell_of
from shapefix.light_dataclasses import dataclass
from shapefix.sources.text import Unreadable, read_bytes, rows_of

_VERSION = 1
_LARGEST = 50_000_000
_MOST_ROWS = 3


class UnusableBaseline(Exception):
    """The file of a baseline cannot be read; the message says why."""


@dataclass(frozen=True, order=True)
class BaselineEntry:
    """One accepted finding: file, code, and hashes of its rows alone and with the rows around them.

    path is relative to the folder of the baseline, with slashes.
    """

    path: str
    code: str
    rows: str
    around: str


@dataclass(frozen=True)
class BaselineMatch:
    """The findings missing in a baseline, and its entries left over."""

    new: tuple[Diagnostic, ...]
    left: tuple[BaselineEntry, ...]


Source = Callable[[str], str | None]
"""Returns the text of a file or a cell, for a path from a finding."""


def read_baseline(path: str) -> tuple[BaselineEntry, ...]:
    """Read the file of a baseline. Raises UnusableBaseline."""
    try:
        content = json.loads(read_bytes(path, _LARGEST))
    except Unreadable as error:
        raise UnusableBaseline(error.message) from None
    except (ValueError, RecursionError):
        raise UnusableBaseline("is not JSON") from None
    if not isinstance(content, dict) or not isinstance(content.get("findings"), list):
        raise UnusableBaseline("is not a baseline of shapefix")
    if content.get("version") != _VERSION:
        raise UnusableBaseline("is a baseline of another version of shapefix")
    return tuple(_entry(each, number) for number, each in enumerate(content["findings"], 1))


def _entry(given: Any, number: int) -> BaselineEntry:
    keys = ("path", "code", "rows", "around")
    if not isinstance(given, dict) or not all(isinstance(given.get(key), str) for key in keys):
        raise UnusableBaseline(f"entry {number} lacks one of {', '.join(keys)}")
    return BaselineEntry(*(given[key] for key in keys))


def write_baseline(path: str, entries: Iterable[BaselineEntry]) -> None:
    """Write the file of a baseline: one row for each finding, in a fixed order. Raises OSError."""
    rows = ",\n".join(
        f"    {json.dumps({'path': each.path, 'code': each.code, 'rows': each.rows, 'around': each.around})}"
        for each in sorted(entries)
    )
    listed = f"[\n{rows}\n  ]" if rows else "[]"
    target = os.path.realpath(path)
    draft = f"{target}.{os.getpid()}.draft"
    try:
        with open(draft, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123
            file.write(f'{{\n  "version": {_VERSION},\n  "findings": {listed}\n}}\n')
        os.replace(draft, target)
    except OSError:
        if os.path.lexists(draft):
            os.unlink(draft)  # noqa: PTH108
        raise


def baseline_entry(finding: Diagnostic, file: str, folder: str, source: Source) -> BaselineEntry:
    """Return the entry for a finding in a file, an absolute path, of a baseline in folder."""
    text = source(finding.span.path) or ""
    # Only the layout of the code counts as little as its line: a formatter may have moved both.
    rows = ["".join(row.split()) for row in rows_of(text)]
    first, last = finding.span.row - 1, finding.span.end_row
    before = next((row for row in reversed(rows[:first]) if row), "")
    after = next((row for row in rows[last:] if row), "")
    # A loop or a class is recognized by its head.
    own = [row for row in rows[first : min(last, first + _MOST_ROWS)] if row]
    return BaselineEntry(entry_path(file, folder), finding.code, _hashed(own), _hashed([before, *own, after]))


def entry_path(file: str, folder: str) -> str:
    """Return the path of a file, or of the notebook around a cell, in the entries of a baseline in folder."""
    cell = cell_of(file)
    return os.path.relpath(file if cell is None else cell[0], folder).replace(os.sep, "/")


def _hashed(rows: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(rows).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def match_baseline(
    entries: Iterable[BaselineEntry], findings: Sequence[tuple[Diagnostic, BaselineEntry]]
) -> BaselineMatch:
    """Match findings with entries, each entry once: first with the rows around them, then without.

    A copy of an accepted line is new, also above the accepted one.
    """
    left = list(entries)
    for key in (_with_context, _without_context):
        available: dict[object, list[BaselineEntry]] = {}
        for entry in left:
            available.setdefault(key(entry), []).append(entry)
        unmatched: list[tuple[Diagnostic, BaselineEntry]] = []
        for finding, entry in findings:
            same = available.get(key(entry))
            if same:
                same.pop()
            else:
                unmatched.append((finding, entry))
        findings = unmatched
        left = [entry for same in available.values() for entry in same]
    return BaselineMatch(tuple(finding for finding, _ in findings), tuple(sorted(left)))


def _with_context(entry: BaselineEntry) -> object:
    return entry


def _without_context(entry: BaselineEntry) -> object:
    return entry.path, entry.code, entry.rows
