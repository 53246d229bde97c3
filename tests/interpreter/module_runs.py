"""A random script, run by torch and analysed by shapefix: who says what, and of which line."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from checking import Check
from random_modules import Script

from shapefix.diagnostics import Severity


@dataclass
class Tally:
    """How many scripts there were, by what is wrong with them: raised by torch, found, and at that line."""

    scripts: Counter[str] = field(default_factory=Counter)
    raised: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    placed: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, raised: bool, found: bool, placed: bool) -> None:
        self.scripts[kind] += 1
        self.raised[kind] += raised
        self.found[kind] += found
        self.placed[kind] += placed

    def lines(self) -> list[str]:
        """The counts as text: the whole, and one line for each way of being wrong."""
        raised, found, placed = (each.total() for each in (self.raised, self.found, self.placed))
        lines = [
            f"{self.scripts.total()} random modules: torch raises in {raised}, "
            f"shapefix finds {found} of them, {placed} at the right line"
        ]
        for kind in sorted(self.raised):
            if self.raised[kind]:
                counts = f"{self.found[kind]} of {self.raised[kind]} found, {self.placed[kind]} at the line"
                lines.append(f"  {kind}: {counts}")
        return lines


@dataclass(frozen=True)
class Ran:
    """The lines that torch came to, and where it raised, if it did; outer are the calls that led there."""

    lines: frozenset[int]
    raised: int | None = None
    outer: frozenset[int] = frozenset()
    message: str = ""


def run(script: Script) -> Ran:
    """Run a script with torch. What is raised by it is told, not raised."""
    code = compile(script.text, "script.py", "exec")
    lines: set[int] = set()

    def watch(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if frame.f_code.co_filename != "script.py":
            return None
        if event == "line":
            lines.add(frame.f_lineno)
        return watch

    torch.manual_seed(0)
    before = sys.gettrace()
    sys.settrace(watch)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(code, {"__name__": "__main__"})
    except Exception as error:
        rows = [
            each.lineno or 0
            for each in traceback.extract_tb(error.__traceback__)
            if each.filename == "script.py"
        ]
        message = f"{type(error).__name__}: {error}"
        return Ran(frozenset(lines), rows[-1], frozenset(rows[:-1]), message)
    finally:
        sys.settrace(before)
    return Ran(frozenset(lines))


def errors(script: Script, folder: Path) -> dict[int, str]:
    """The errors that shapefix finds in sizes and layouts, by the lines that raise them."""
    return {
        found.failing.row: f"{found.code} {found.message}"
        for found in Check(folder)(script.text)
        if found.severity is Severity.ERROR
    }


def compared(script: Script, folder: Path, tally: Tally) -> str | None:
    """Count what shapefix finds in a script; the reason where it calls an error what torch does."""
    ran = run(script)
    found = errors(script, folder)
    tally.add(
        script.broken or "nothing wrong",
        ran.raised is not None,
        ran.raised is not None and bool(found),
        ran.raised in found,
    )
    wrong = {row: message for row, message in found.items() if row in ran.lines - ran.outer - {ran.raised}}
    if ran.raised is None:
        wrong = found
    return "\n".join(f"line {row}: {message}" for row, message in wrong.items()) or None
