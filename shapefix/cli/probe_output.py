"""What is printed of a run: the account of it, its findings, and what may be the probe's own doing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from shapefix.cli.exit_codes import FAILED
from shapefix.cli.probe_options import Asked
from shapefix.cli.terminal import echo_err, use_color, width
from shapefix.diagnostics import Diagnostic
from shapefix.diagnostics import Failure as Failed
from shapefix.report.formats import FINDING_FORMATS, PROBE_FORMATS
from shapefix.report.view import View, one_line, visible
from shapefix.runtime import ranks
from shapefix.runtime.findings.collect import Found
from shapefix.runtime.forecast import text_report
from shapefix.runtime.forecast.prediction import Forecast
from shapefix.runtime.observations import Failure
from shapefix.runtime.report.text_report import Run, ending, lines


@dataclass(frozen=True)
class ProbeResult:
    """A run of the probe, with its findings, the exit code and, for --vram, the forecast."""

    run: Run
    found: Found
    asked: Asked
    code: int
    foretold: Forecast | None


def view_of(asked: Asked) -> View:
    """How findings are shown."""
    color = use_color(asked.color, sys.stdout)
    return View(os.getcwd(), width(sys.stdout), color, False, _source, proves=True)  # noqa: PTH109


def painter(view: View) -> Callable[[list[list[tuple[str, str]]]], str]:
    """What turns rows of styled stretches into text."""
    from shapefix.report.paint import painter

    paint = painter(view.color)
    return lambda rows: paint([[(visible(text), style) for text, style in row] for row in rows])


def report(run: Run, found: Found, asked: Asked, code: int, foretold: Forecast | None = None) -> int:
    """Show a run that ends with an exit code, with what was found and foretold, as it was asked for.

    Returns the exit code: another one where the page that was asked for could not be written.
    """
    view = view_of(asked)
    if asked.output_format in PROBE_FORMATS:
        result = ProbeResult(run, found, asked, code, foretold)
        sys.stdout.writelines(PROBE_FORMATS[asked.output_format].render(result, view))
    else:
        failures = () if found.diagnostics or run.complete else (_failed(run, view),)
        findings_format = FINDING_FORMATS[asked.output_format]
        sys.stdout.writelines(findings_format.render(found.diagnostics, failures, view))
    if asked.report is None:
        return code
    from shapefix.runtime.report.page import write
    from shapefix.runtime.report.page.html import page

    try:
        write.write(asked.report, page(run, asked.arguments, found, view, foretold))
    except OSError as error:
        echo_err(f"error: {one_line(asked.report)}: cannot be written: {error.strerror or error}")
        return FAILED
    if not asked.quiet:
        echo_err(f"The page is in {one_line(asked.report)}.")
    return code


def json(result: ProbeResult, view: View) -> Iterator[str]:
    """Render a run as one JSON document."""
    from shapefix.runtime.report.json_document import document, text

    arguments = result.asked.arguments
    yield text(document(result.run, arguments, result.found, result.code, view, result.foretold))


def full(result: ProbeResult, view: View) -> Iterator[str]:
    """Render a run as text for a terminal: its account or forecast, findings, and notes."""
    from shapefix.report.full import render

    run, found, asked, foretold = result.run, result.found, result.asked, result.foretold

    def show(path: str) -> str:
        return one_line(view.relative(path))

    if foretold is not None:
        account = text_report.lines(foretold, asked.script, asked.arguments, show)
        yield painter(view)(list(account)) + "\n"
    elif not asked.quiet:
        compared = [[], *ranks.lines(run, show)] if run.ranks else []
        yield painter(view)([*lines(run, show, view.width), *compared]) + "\n"
    if not found.diagnostics and run.complete and foretold is None:
        yield "Nothing found.\n"
    if found.diagnostics:
        yield from render(found.diagnostics, (), view)
    if not asked.quiet and foretold is None:
        yield from (_note(each, view) + "\n" for each in found.notes)
    if found.aftermath is not None and not asked.quiet and foretold is None:
        yield _aftermath(found.aftermath, view) + "\n"


def _failed(run: Run, view: View) -> Failed:
    """What a run that shows nothing says of its script."""
    return Failed(run.script, f"the probe could not see it work: {ending(run, view.relative)}")


def _note(note: Diagnostic, view: View) -> str:
    """What is said of what may well be meant."""
    return one_line(f"note: {view.relative(note.span.path)}:{note.span.row}: {note.message}")


def _aftermath(failure: Failure, view: View) -> str:
    """What is said of an exception that may be the probe's own doing."""
    place = failure.stack[0] if failure.stack else None
    at = f" at {view.relative(place.path)}:{place.row}" if place else ""
    said = f"{failure.type}{at}" + (f": {failure.message}" if failure.message else "")
    return one_line(f"note: {said}; it may come of the loops that the probe has ended early")


@cache
def _source(path: str) -> str | None:
    from shapefix.sources.notebooks import cell_of, cells
    from shapefix.sources.text import Unreadable, read_bytes, read_source

    cell = cell_of(path)
    try:
        if cell is not None:
            return next((each.text for each in cells(read_bytes(cell[0])) if each.number == cell[1]), None)
        return read_source(path).text
    except Unreadable:
        return None
