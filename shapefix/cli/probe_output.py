"""Print a run: its report, its findings, and its notes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from shapefix.cli.exit_codes import FAILED
from shapefix.cli.probe_options import ProbeOptions
from shapefix.cli.terminal import echo_err, use_color, width
from shapefix.diagnostics import Diagnostic
from shapefix.diagnostics import Failure as Failed
from shapefix.light_dataclasses import dataclass
from shapefix.report.formats import FINDING_FORMATS, PROBE_FORMATS
from shapefix.report.view import View, one_line
from shapefix.runtime.agent.masking import Masker
from shapefix.runtime.confirmation.static_verdicts import static_lines
from shapefix.runtime.findings.collect import ProbeFindings
from shapefix.runtime.forecast.prediction import MemoryForecast
from shapefix.runtime.forecast.text_report import forecast_lines
from shapefix.runtime.observations import Observations, RaisedException
from shapefix.runtime.ranks import rank_lines
from shapefix.runtime.report.formatting import Line, counted
from shapefix.runtime.report.json_document import document, json_text
from shapefix.runtime.report.run_comparison import RunSummary, comparison_lines, summary
from shapefix.runtime.report.text_report import ending, forward_lines, report_lines
from shapefix.runtime.run import ProbeRun

_UNCUT = 2_000


@dataclass(frozen=True)
class ProbeResult:
    """A run of the probe, with its findings and the exit code.

    forecast is that of --vram, baseline the earlier run of --baseline. printed are the rows of a
    ForwardPrinter.
    """

    run: ProbeRun
    found: ProbeFindings
    options: ProbeOptions
    code: int
    forecast: MemoryForecast | None
    baseline: RunSummary | None = None
    printed: Sequence[Line] = ()


class ForwardPrinter:
    """Prints the first batch and the model in a terminal while the script still runs."""

    def __init__(self, options: ProbeOptions) -> None:
        self._options = options
        self.rows: list[Line] = []

    @property
    def applies(self) -> bool:
        """Whether the report goes to a terminal, and is that of one process."""
        options = self._options
        wanted = options.output_format == "full" and not options.quiet and options.processes == 1
        return wanted and sys.stdout.isatty()

    def __call__(self, observed: Observations) -> None:
        """Print the part of the report that is known after the first forward, only once."""
        if self.rows:
            return
        view = view_of(self._options)
        self.rows = list(forward_lines(self._options.script, observed, _paths(view), view.width))
        sys.stdout.write(painter(view)(self.rows))
        sys.stdout.flush()


def _paths(view: View) -> Callable[[str], str]:
    return lambda path: one_line(view.relative(path))


def view_of(options: ProbeOptions, masker: Masker | None = None) -> View:
    """Return the view for findings, from the options; masker masks secrets in their sources."""
    color = use_color(options.color, sys.stdout)

    def source(path: str) -> str | None:
        text = _source(path)
        return text if text is None or masker is None else masker.mask_source(text)

    return View(os.getcwd(), width(sys.stdout), color, False, cache(source), proves=True, climbs=True)  # noqa: PTH109


def painter(view: View) -> Callable[[list[list[tuple[str, str]]]], str]:
    """A function to convert styled rows into text."""
    from shapefix.report.paint import painter

    return painter(view.color)


def report(
    run: ProbeRun,
    found: ProbeFindings,
    options: ProbeOptions,
    code: int,
    forecast: MemoryForecast | None = None,
    baseline: RunSummary | None = None,
    printed: Sequence[Line] = (),
) -> int:
    """Print a run in the requested format, and write its page with --report.

    Returns code, or FAILED if the page cannot be written.
    """
    view = view_of(options, run.masker)
    options = replace(options, arguments=[run.masker.mask(each) for each in options.arguments])
    if options.output_format in PROBE_FORMATS:
        result = ProbeResult(run, found, options, code, forecast, baseline, printed)
        sys.stdout.writelines(PROBE_FORMATS[options.output_format].render(result, view))
    else:
        failures = () if found.diagnostics or run.complete else (_failed(run, view),)
        findings_format = FINDING_FORMATS[options.output_format]
        sys.stdout.writelines(findings_format.render(found.diagnostics, failures, view))
    if options.report is None:
        return code
    from shapefix.runtime.report.page.html import page
    from shapefix.runtime.report.page.write import write_page

    try:
        write_page(options.report, page(run, options.arguments, found, view, forecast))
    except OSError as error:
        echo_err(f"error: {one_line(options.report)}: cannot be written: {error.strerror or error}")
        return FAILED
    if not options.quiet:
        echo_err(f"Report written to {one_line(options.report)}.")
    return code


def json(result: ProbeResult, view: View) -> Iterator[str]:
    """Render a run as one JSON document."""
    arguments = result.options.arguments
    yield json_text(document(result.run, arguments, result.found, result.code, view, result.forecast))


def full(result: ProbeResult, view: View) -> Iterator[str]:
    """Render a run as text for a terminal: its report or forecast, findings, and notes."""
    from shapefix.report.full import render

    run, found, options, forecast = result.run, result.found, result.options, result.forecast
    show = _paths(view)
    if forecast is not None:
        rows = forecast_lines(forecast, options.script, options.arguments, show)
        yield painter(view)(list(rows)) + "\n"
    elif not options.quiet:
        ranks = [[], *rank_lines(run, show)] if run.ranks else []
        # A file or a pipe has no edge at which to cut sizes.
        columns = view.width if sys.stdout.isatty() else max(view.width, _UNCUT)
        yield painter(view)([*report_lines(run, show, columns, result.printed), *ranks]) + "\n"
    if not found.diagnostics and run.complete and forecast is None:
        yield f"Nothing found{_reach(run)}.\n"
    if found.diagnostics:
        yield from render(found.diagnostics, (), view)
    if not options.quiet and forecast is None:
        yield from (_note(each, view) + "\n" for each in found.notes)
    if not options.quiet and forecast is None:
        yield painter(view)(list(static_lines(found, show)))
    if result.baseline is not None:
        now = summary(document(run, (), found, result.code, view))
        yield painter(view)(list(comparison_lines(result.baseline, now, options.baseline or ""))) + "\n"
    if found.early_stop_artifact is not None and not options.quiet and forecast is None:
        yield _artifact(found.early_stop_artifact, found.artifact_cause, view) + "\n"


def _reach(run: ProbeRun) -> str:
    """The reach of a run, if it was cut short."""
    if not run.cut_short:
        return ""
    steps = run.observed.steps
    return f" in {counted(steps, 'training step')}" if steps else " in the part that ran"


def _failed(run: ProbeRun, view: View) -> Failed:
    """The error for an incomplete run without findings."""
    return Failed(run.script, f"the run did not complete: {ending(run, view.relative)}")


def _note(note: Diagnostic, view: View) -> str:
    """The line for a possibly intended finding."""
    return one_line(f"note: {view.relative(note.span.path)}:{note.span.row}: {note.message}")


def _artifact(failure: RaisedException, cause: str, view: View) -> str:
    """The line for an exception possibly caused by the probe."""
    place = failure.stack[0] if failure.stack else None
    at = f" at {view.relative(place.path)}:{place.row}" if place else ""
    text = f"{failure.type}{at}" + (f": {failure.message}" if failure.message else "")
    return one_line(f"note: {text}; {cause}, which may have caused this")


@cache
def _source(path: str) -> str | None:
    from shapefix.diagnostics import cell_of
    from shapefix.sources.notebooks import cells
    from shapefix.sources.text import Unreadable, read_bytes, read_source

    cell = cell_of(path)
    try:
        if cell is not None:
            return next((each.text for each in cells(read_bytes(cell[0])) if each.number == cell[1]), None)
        return read_source(path).text
    except Unreadable:
        return None
