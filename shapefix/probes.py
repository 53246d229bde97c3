"""What the command `probe` does, and the exit code it ends with."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from shapefix.diagnostics import Severity
from shapefix.probe.account import Run, lines
from shapefix.probe.findings import CRASH, Found, findings
from shapefix.probe.observations import Failure
from shapefix.report.view import View, one_line, visible
from shapefix.terminal import colour_wanted, say, width

CLEAN, FOUND, FAILED = 0, 1, 2


@dataclass(frozen=True)
class Asked:
    """A command line of probe: python None is for the interpreter that fits.

    timeout is in seconds, vram in bytes; None is for no forecast.
    """

    script: str
    arguments: Sequence[str]
    python: str | None
    steps: int
    timeout: float
    device: str
    vram: int | None
    color: str
    quiet: bool


def probe(asked: Asked) -> int:
    """Run a script for a training step, and report what happened."""
    from shapefix.probe.interpreter import interpreter
    from shapefix.probe.run import probe

    problem = _unfit(asked.script)
    if problem is not None:
        say(f"error: {one_line(asked.script)}: {problem}")
        return FAILED
    python = asked.python or interpreter(Path(asked.script))
    found = shutil.which(python)
    if found is None:
        say(f"error: {one_line(python)}: there is no such interpreter; name the one to use with --python")
        return FAILED
    if asked.vram is not None and asked.device not in ("auto", "fake"):
        say(f"error: --vram forecasts for a GPU that is not there, not for --device {asked.device}")
        return FAILED
    try:
        if asked.vram is not None:
            return _forecast(found, asked, asked.vram)
        options = () if asked.device == "auto" else ("--device", asked.device)
        run = probe(found, asked.script, asked.arguments, asked.steps, asked.timeout, options)
    except OSError as error:
        say(f"error: {one_line(python)}: cannot be started: {error.strerror or error}")
        return FAILED
    known = findings(run.observed, _rules())
    _report(run, known, asked)
    return _code(run, known)


def _code(run: Run, known: Found) -> int:
    """The exit code for a run."""
    if known.diagnostics and (run.reached or any(found.code != CRASH for found in known.diagnostics)):
        return FOUND
    if known.diagnostics:
        return FAILED
    return CLEAN if run.complete or (known.aftermath is not None and run.trained) else FAILED


def _forecast(python: str, asked: Asked, vram: int) -> int:
    """Forecast the memory of a step, and report it. Raises OSError as child.run does."""
    from shapefix.probe import memory_account
    from shapefix.probe.forecasting import Script, forecast

    def told(what: str) -> None:
        if sys.stderr.isatty() and not asked.quiet:
            say(f"running {asked.script}: {what}")

    script = Script(python, asked.script, asked.arguments, asked.timeout)
    run, foretold = forecast(script, vram, told)
    known = findings(run.observed, _rules())
    if foretold is None:
        _report(run, known, asked)
        if run.trained:
            say("error: no forecast: the script trains, but keeps nothing on a GPU; does it ask for `cuda`?")
        else:
            say("error: no forecast: the script came to no training step")
        return FOUND if known.diagnostics else FAILED
    view, paint = _view(asked)
    rows = memory_account.lines(
        foretold, asked.script, asked.arguments, lambda path: one_line(view.relative(path))
    )
    sys.stdout.write(paint([[(visible(text), style) for text, style in row] for row in rows]) + "\n")
    if known.diagnostics:
        from shapefix.report import full

        sys.stdout.writelines(full.render(known.diagnostics, (), view))
    return FOUND if known.diagnostics or not foretold.fits else CLEAN


def _unfit(script: str) -> str | None:
    """Why a path cannot be run, None where it can."""
    path = Path(script)
    if path.is_dir():
        return "is a folder; name the script in it that trains"
    if not path.is_file():
        return "there is no such file"
    return None if os.access(path, os.R_OK) else "permission denied"


def _rules() -> dict[str, tuple[str, Severity]]:
    from shapefix.checks.rules import RULES

    return {code: (rule.name, rule.severity) for code, rule in RULES.items()}


def _view(asked: Asked) -> tuple[View, Callable[[list[list[tuple[str, str]]]], str]]:
    """How findings are shown, and what turns rows into text."""
    from shapefix.report.paint import painter

    colour = colour_wanted(asked.color, sys.stdout)
    return View(os.getcwd(), width(sys.stdout), colour, False, _source), painter(colour)  # noqa: PTH109


def _report(run: Run, found: Found, asked: Asked) -> None:
    from shapefix.report import full

    view, paint = _view(asked)
    if not asked.quiet:
        account = lines(run, lambda path: one_line(view.relative(path)), view.width)
        sys.stdout.write(paint([[(visible(text), style) for text, style in line] for line in account]) + "\n")
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
