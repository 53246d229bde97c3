"""Settings of a report, and text helpers for all formats."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from enum import Enum, auto
from pathlib import Path
from typing import TextIO

from shapefix.diagnostics import Applicability, Diagnostic, Failure, Unchecked, cell_of
from shapefix.light_dataclasses import dataclass


def _no_source(path: str) -> str | None:
    return None


@dataclass(frozen=True)
class Coverage:
    """Counts of read files, and of those without a library covered by rules."""

    files: int
    irrelevant: int = 0


class FixOffer(Enum):
    """Decision of `shapefix fix` about a finding: the fix is applied, or the reason against it."""

    APPLIED = auto()
    NEEDS_OPTION = auto()
    """The fix is unsafe: `--unsafe-fixes` applies it."""
    OUTSIDE = auto()
    """The finding is in a file outside the given paths."""
    NONE = auto()
    """There is no fix, or only one by hand."""


@dataclass(frozen=True)
class View:
    """The settings of a report.

    folder is the base of displayed paths; width counts terminal cells; sources returns the text of a path as
    it was analyzed, or None. unsafe_fixes is true if the command line enables them; offers decides about each
    fix, and by default follows unsafe_fixes. proves is true if `shapefix probe` makes the fixes and runs the
    script to prove them. coverage is None if a script was run. quiet omits the summary. verbose shows every
    step of the evidence, and no finding folded into another one. unchecked are places that could not be
    checked, for programs; people get them as notes. climbs is true if files outside of folder are shown
    relative to it.
    """

    folder: str
    width: int = 80
    color: bool = False
    unsafe_fixes: bool = False
    sources: Callable[[str], str | None] = _no_source
    proves: bool = False
    quiet: bool = False
    verbose: bool = False
    coverage: Coverage | None = None
    offers: Callable[[Diagnostic], FixOffer] | None = None
    unchecked: tuple[Unchecked, ...] = ()
    climbs: bool = False

    def relative(self, path: str) -> str:
        """Return the path for display: relative inside the folder, absolute outside of it.

        With climbs, a path outside is relative if that is shorter.
        """
        full, folder = self.absolute(path), os.path.normpath(Path(self.folder).absolute())
        inside = full.removeprefix(folder + os.sep)
        if inside != full or full == folder or not self.climbs or not os.path.isabs(full):  # noqa: PTH117
            return inside
        try:
            return min(full, os.path.relpath(full, folder), key=len)
        except ValueError:  # another drive
            return full

    def absolute(self, path: str) -> str:
        """Return the absolute path; `-` and `<stdin>` stay unchanged."""
        if path == "-" or path.startswith("<"):
            return path
        return os.path.normpath(Path(self.folder, path).absolute())

    def offer(self, finding: Diagnostic) -> FixOffer:
        """Return the decision of `shapefix fix` about a finding, with the current options."""
        if self.offers is not None:
            return self.offers(finding)
        if finding.fix is None or finding.fix.applicability is Applicability.DISPLAY:
            return FixOffer.NONE
        is_safe = finding.fix.applicability is Applicability.SAFE
        return FixOffer.APPLIED if is_safe or self.unsafe_fixes else FixOffer.NEEDS_OPTION

    def fixable(self, finding: Diagnostic) -> bool:
        """Check whether `shapefix fix` would apply the finding's fix with the current options."""
        return self.offer(finding) is FixOffer.APPLIED


def wants_color(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Decide whether to color a stream: FORCE_COLOR, then NO_COLOR, then whether it is a terminal."""
    if environ.get("FORCE_COLOR"):
        return True
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


# Terminals interpret these, and bidirectional ones make a line look different from its content.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible(text: str, keep: str = "") -> str:
    """Replace control characters, except those in keep, by one printable character each."""

    def picture(found: re.Match[str]) -> str:
        character = found[0]
        if character in keep:
            return character
        code = ord(character)
        return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"

    return _UNSEEN.sub(picture, text)


def is_visible(text: str, keep: str = "") -> bool:
    """Check for text without control characters, except those in keep."""
    return all(found in keep for found in _UNSEEN.findall(text))


def json_text(text: str) -> str:
    """Escape the control characters in a JSON text; the text has the same meaning."""
    return _UNSEEN.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """Join text to one line without control characters."""
    return visible(re.sub(r"\s*[\r\n]+\s*", " ", text.strip()))


def failure_line(failure: Failure, view: View) -> str:
    """Return `error: path:row:column: message`, without unknown positions."""
    return f"error: {placed(failure, view)}"


def unchecked_line(unchecked: Unchecked, view: View, more: int = 0) -> str:
    """Return `note: path:row:column: message`; more counts similar places."""
    return f"note: {placed(unchecked, view)}{f' (and {more} more)' if more else ''}"


def placed(what: Failure | Unchecked, view: View) -> str:
    """Return `path:row:column: message`, without unknown positions."""
    place = [view.relative(what.path)]
    if what.row is not None:
        place.append(str(what.row))
        if what.column is not None:
            place.append(str(what.column))
    return f"{one_line(':'.join(place))}: {one_line(what.message)}"


def with_circumstances(finding: Diagnostic, text: str, separator: str) -> str:
    """Return a text with the condition of a finding and the verdict of a run."""
    parts = [text]
    if finding.condition is not None:
        parts.append(f"fails when: {finding.condition.text}")
    if finding.confirmation is not None:
        parts.append(f"{finding.confirmation.verdict.value}: {finding.confirmation.reason}")
    return separator.join(parts)


def with_cell(path: str, row: int | None, text: str) -> str:
    """Return a text with the place in its cell, for formats without cells."""
    cell = cell_of(path)
    return text if cell is None else f"cell {cell[1]}, row {row}: {text}"
