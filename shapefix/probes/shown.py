"""What is printed of a run: the account of it, its findings, and what may be the probe's own doing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache

from shapefix.diagnostics import Severity
from shapefix.probe.account import Run, lines
from shapefix.probe.findings import Found
from shapefix.probe.observations import Failure
from shapefix.probes.asked import Asked
from shapefix.report.view import View, one_line, visible
from shapefix.terminal import colour_wanted, width


def rules() -> dict[str, tuple[str, Severity]]:
    """The name and the severity of each rule, by its code."""
    from shapefix.checks.rules import RULES

    return {code: (rule.name, rule.severity) for code, rule in RULES.items()}


def view_of(asked: Asked) -> View:
    """How findings are shown."""
    colour = colour_wanted(asked.color, sys.stdout)
    return View(os.getcwd(), width(sys.stdout), colour, False, _source)  # noqa: PTH109


def painter(view: View) -> Callable[[list[list[tuple[str, str]]]], str]:
    """What turns rows of styled stretches into text."""
    from shapefix.report.paint import painter

    paint = painter(view.colour)
    return lambda rows: paint([[(visible(text), style) for text, style in row] for row in rows])


def report(run: Run, found: Found, asked: Asked) -> None:
    """Print the account of a run, and what was found."""
    from shapefix.report import full

    view = view_of(asked)
    if not asked.quiet:
        account = lines(run, lambda path: one_line(view.relative(path)), view.width)
        sys.stdout.write(painter(view)(list(account)) + "\n")
    if not found.diagnostics and run.complete:
        sys.stdout.write("Nothing found.\n")
    if found.diagnostics:
        sys.stdout.writelines(full.render(found.diagnostics, (), view))
    if found.aftermath is not None and not asked.quiet:
        sys.stdout.write(_aftermath(found.aftermath, view) + "\n")


def _aftermath(failure: Failure, view: View) -> str:
    """What is said of an exception that may be the probe's own doing."""
    place = failure.stack[0] if failure.stack else None
    at = f" at {view.relative(place.path)}:{place.row}" if place else ""
    said = f"{failure.type}{at}" + (f": {failure.message}" if failure.message else "")
    return one_line(f"note: {said}; it may come of the loops that the probe has ended early")


@cache
def _source(path: str) -> str | None:
    from shapefix.sources.text import Unreadable, read_source

    try:
        return read_source(path).text
    except Unreadable:
        return None
