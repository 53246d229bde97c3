"""How a report is to be shown, and what every format needs to say the same way."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from shapefix.diagnostics import Applicability, Diagnostic, Failure


def _no_source(path: str) -> str | None:
    return None


@dataclass(frozen=True)
class Coverage:
    """How many files were read, how many of them use no library that rules know, and what was skipped."""

    files: int
    irrelevant: int = 0
    notebooks: int = 0


@dataclass(frozen=True)
class View:
    """Where and how wide a report appears.

    folder is the one that shown paths are relative to; width counts terminal cells; sources gives the text of
    a path as it was analysed, None when there is none; unsafe_fixes says whether the user asked for these
    too, and proves whether it is `shapefix probe` that makes the fixes, and runs the script to prove them.
    coverage is None where a script was run instead of files being checked.
    """

    folder: str
    width: int = 80
    colour: bool = False
    unsafe_fixes: bool = False
    sources: Callable[[str], str | None] = _no_source
    proves: bool = False
    coverage: Coverage | None = None

    def relative(self, path: str) -> str:
        """path as a person reads it: relative inside the folder, absolute outside it."""
        full = self.absolute(path)
        return full.removeprefix(os.path.normpath(Path(self.folder).absolute()) + os.sep)

    def absolute(self, path: str) -> str:
        """path as a program wants it; `-` and `<stdin>` stay as they are."""
        if path == "-" or path.startswith("<"):
            return path
        return os.path.normpath(Path(self.folder, path).absolute())

    def fixable(self, finding: Diagnostic) -> bool:
        """Whether `shapefix fix`, as the user called us, would take the finding's fix."""
        if finding.fix is None:
            return False
        taken = (Applicability.SAFE, Applicability.UNSAFE) if self.unsafe_fixes else (Applicability.SAFE,)
        return finding.fix.applicability in taken


def wants_colour(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to colour what goes to stream: FORCE_COLOR, then NO_COLOR, then whether it is a terminal."""
    if environ.get("FORCE_COLOR"):
        return True
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


# Terminals act on these, and the bidirectional ones make a line read as something it is not.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible(text: str, keep: str = "") -> str:
    """text with its control characters, apart from those in keep, as one printable character each."""

    def picture(found: re.Match[str]) -> str:
        character = found[0]
        if character in keep:
            return character
        code = ord(character)
        return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"

    return _UNSEEN.sub(picture, text)


def one_line(text: str) -> str:
    """text on one line, harmless to a terminal."""
    return visible(re.sub(r"\s*[\r\n]+\s*", " ", text.strip()))


def failure_line(failure: Failure, view: View) -> str:
    """`error: path:row:col: message`, without the places that are not known."""
    place = [view.relative(failure.path)]
    if failure.row is not None:
        place.append(str(failure.row))
        if failure.column is not None:
            place.append(str(failure.column))
    return f"error: {one_line(':'.join(place))}: {one_line(failure.message)}"
