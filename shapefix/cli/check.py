"""`shapefix check`, and the steps shared with `shapefix fix`."""

# ruff: noqa: PTH109

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from shapefix.cli.baseline import open_baseline
from shapefix.cli.changed import only_changed, open_comparison
from shapefix.cli.exit_codes import INTERRUPTED, exit_code
from shapefix.cli.output import (
    counted,
    report_failures,
    report_library_copies,
    report_skipped_links,
    report_unchecked,
    write,
)
from shapefix.cli.request import CheckRequest
from shapefix.cli.terminal import (
    ProgressBar,
    UnusableFile,
    echo_err,
    read_input,
    terminated_as_interrupt,
    use_color,
    width,
)
from shapefix.diagnostics import Applicability, Diagnostic
from shapefix.engine.session import CheckSession, StandardInput
from shapefix.engine.settings import Settings
from shapefix.report.formats import FINDING_FORMATS, STATISTICS_FORMATS
from shapefix.report.view import Coverage, FixOffer, View, placed
from shapefix.sources.configuration import ConfigurationError, suggestion
from shapefix.sources.text import is_notebook

if TYPE_CHECKING:
    from shapefix.report.formats import FindingFormat, StatisticsFormat
    from shapefix.runtime.confirmation.run_record import Record


def check(request: CheckRequest) -> int:
    """Report findings. Raises ConfigurationError and UnusableFile."""
    settings = Settings(request.options)
    if request.show_files or request.show_settings:
        from shapefix.cli.check_inputs import show_inputs

        return show_inputs(request, settings)
    output_format = format_of(request, settings)
    statistics = _statistics_format(output_format) if request.statistics else None
    record = None if request.with_probe is None else _record(request.with_probe)
    baseline = (
        None if request.baseline is None else open_baseline(request.baseline, write=request.write_baseline)
    )
    comparison = None if request.changed is None else open_comparison(request, request.changed)
    is_partial = output_format.for_people and baseline is None and comparison is None
    session = run_session(request, settings, is_partial=is_partial)
    reported, failures = _confirmed(session, record), session.failures()
    if baseline is not None and request.write_baseline:
        baseline.write(session, settings, without_answers(reported))
        report_failures(failures, View(os.getcwd()))
        return exit_code(False, bool(failures))
    if baseline is not None:
        reported = baseline.only_new(session, settings, reported, request)
    if comparison is not None:
        reported = only_changed(comparison, session, reported, request)
    findings = tuple(finding for finding in without_answers(reported) if not finding.is_refuted)
    view = view_of(request, settings, session)
    if statistics is not None:
        write(statistics.render(findings, view))
        report_failures(failures, view)
    else:
        hidden = session.hidden() if request.verbose else ()
        write(output_format.render((*reported, *hidden), failures, view))
    report_notes(request, session, view, output_format)
    if session.is_interrupted:
        checked, known = session.stats.files, len(session.files)
        echo_err(
            f"warning: interrupted after {checked:,} of {counted(known, 'file')}; the output is incomplete"
        )
        return INTERRUPTED
    return exit_code(bool(findings), bool(failures), request.exit_zero)


def _record(name: str) -> Record:
    """Read the record of a probe run. Raises UnusableFile."""
    from shapefix.runtime.confirmation.run_record import UnusableRecord, read

    try:
        return read(name)
    except UnusableRecord as error:
        raise UnusableFile(name, str(error)) from None


def _confirmed(session: CheckSession, record: Record | None) -> tuple[Diagnostic, ...]:
    """Return the findings, compared with a probe run and with the errors stored in notebooks."""
    reported = session.findings()
    if record is not None:
        from shapefix.runtime.confirmation.confirm import Confirmer

        reported = Confirmer(record, session.data).judged(reported)
    if any(map(is_notebook, session.files)):
        from shapefix.diagnosis.stored_findings import with_stored_errors

        reported = with_stored_errors(session, reported)
    return reported


def run_session(request: CheckRequest, settings: Settings, *, is_partial: bool = False) -> CheckSession:
    """Check the files of a command line; with is_partial, an interrupt ends only the check."""
    standard_input = None
    if request.reads_stdin:
        standard_input = StandardInput(read_input(), request.stdin_filename)
    with ProgressBar("Checking", sys.stderr, request.quiet) as progress:
        session = CheckSession(request.paths, settings, standard_input, progress)
        if is_partial:
            with terminated_as_interrupt():
                session.run_until_interrupted()
        else:
            session.run()
    if not request.quiet:
        view = View(os.getcwd())
        report_skipped_links(session.links_outside, view, request.verbose)
        report_library_copies(session.library_copies, view)
        for unused in session.unused_settings:
            echo_err(f"warning: {placed(unused, view)}")
    if not session.files and not session.failures() and not request.quiet:
        echo_err("warning: no Python files found under the given paths")
    return session


def without_answers(reported: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """Drop the answers to `reveal(x)`; they do not count as findings."""
    return tuple(finding for finding in reported if not finding.is_answer)


def view_of(request: CheckRequest, settings: Settings, session: CheckSession) -> View:
    return View(
        os.getcwd(),
        width(sys.stdout),
        use_color(request.color, sys.stdout),
        request.options.unsafe_fixes is True,
        session.source,
        quiet=request.quiet,
        verbose=request.verbose,
        coverage=Coverage(session.read, session.stats.irrelevant),
        offers=partial(_offer, session, settings),
        unchecked=session.unchecked(),
    )


def _offer(session: CheckSession, settings: Settings, finding: Diagnostic) -> FixOffer:
    """Return the offer of `shapefix fix` for a finding of the session."""
    fix, path = finding.fix, session.real_path(finding.span.path)
    if fix is None or fix.applicability is Applicability.DISPLAY:
        return FixOffer.NONE
    if not session.is_given(path):
        return FixOffer.OUTSIDE
    if not settings.is_fixable(path, finding.code):
        return FixOffer.NONE
    return FixOffer.APPLIED if settings.fixes(path, fix, finding.code) else FixOffer.NEEDS_OPTION


def format_of(request: CheckRequest, settings: Settings) -> FindingFormat:
    """Return the output format of the command line, the configuration, or the default."""
    if request.output_format is not None:
        return FINDING_FORMATS[request.output_format]
    configuration = settings.configurations.nearest(os.path.realpath(os.curdir))
    layer = configuration.setting_layer("output_format")
    if layer is None or layer.output_format is None:
        return FINDING_FORMATS["full"]
    chosen = layer.output_format
    if chosen not in FINDING_FORMATS:
        hint = suggestion(chosen, FINDING_FORMATS, f"; choose from {', '.join(FINDING_FORMATS)}")
        raise ConfigurationError(f"{layer.source}output-format: unknown format {chosen!r}{hint}")
    return FINDING_FORMATS[chosen]


def _statistics_format(output_format: FindingFormat) -> StatisticsFormat:
    """Return the format of --statistics. Raises click.UsageError for one without statistics, as ruff does."""
    import click

    found = STATISTICS_FORMATS.get(output_format.name)
    if found is None:
        known = ", ".join(STATISTICS_FORMATS)
        raise click.UsageError(f"--statistics has the formats {known}, but not {output_format.name}")
    return found


def report_notes(
    request: CheckRequest, session: CheckSession, view: View, output_format: FindingFormat
) -> None:
    """Print the omitted places, unless they are in the output, and the additional lines of --verbose."""
    hidden = session.hidden()
    unused = sum(bool(each.unused) for each in hidden)
    if hidden and not request.quiet and not request.verbose:
        if unused:
            what = "is 1 finding" if unused == 1 else f"are {unused} findings"
            echo_err(f"note: there {what} in code that nothing in the project uses (--verbose shows all)")
        reserved = len(hidden) - unused
        if reserved:
            what = "1 finding rests" if reserved == 1 else f"{reserved} findings rest"
            echo_err(f"note: {what} on an assumption (--verbose shows all, --preview reports them)")
    if not request.quiet and not output_format.lists_unchecked:
        report_unchecked(session.unchecked(), view, request.verbose)
    if not request.verbose:
        return
    stats = session.stats
    skipped = stats.irrelevant
    does = "does not import" if skipped == 1 else "do not import"
    why = f" ({skipped} skipped: {does} torch or transformers)" if skipped else ""
    echo_err(f"Checked {counted(stats.files, 'file')}{why}")
    if stats.importers:
        does = "imports" if stats.importers == 1 else "import"
        echo_err(f"Also ran {counted(stats.importers, 'file')} of the project that {does} the given files")
