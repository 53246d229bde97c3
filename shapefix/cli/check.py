"""`shapefix check`, and the steps shared with `shapefix fix`."""

# ruff: noqa: PTH109, PTH112

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from shapefix.cli.baseline import open_baseline
from shapefix.cli.exit_codes import CLEAN, FAILED, exit_code
from shapefix.cli.output import (
    counted,
    report_failures,
    report_skipped_links,
    report_unchecked,
    write,
)
from shapefix.cli.request import CheckRequest
from shapefix.cli.terminal import ProgressBar, echo_err, read_input, use_color, width
from shapefix.diagnostics import Applicability, Diagnostic
from shapefix.engine.baseline import UnusableBaseline
from shapefix.engine.batch import project_root_of, requirements_root
from shapefix.engine.session import CheckSession, StandardInput, discovered_files
from shapefix.engine.settings import Settings
from shapefix.engine.source_overlay import real_path
from shapefix.report.formats import FINDING_FORMATS
from shapefix.report.view import Coverage, FixOffer, View, one_line, placed
from shapefix.sources.configuration import ConfigurationError, suggestion
from shapefix.sources.text import is_notebook

if TYPE_CHECKING:
    from shapefix.report.formats import FindingFormat


def check(request: CheckRequest) -> int:
    """Report findings. Raises ConfigurationError."""
    settings = Settings(request.options)
    if request.show_files or request.show_settings:
        return _show(request, settings)
    output_format = format_of(request, settings)
    if request.with_probe is not None:
        from shapefix.runtime.confirmation.run_record import UnusableRecord, read

        try:
            record = read(request.with_probe)
        except UnusableRecord as error:
            echo_err(f"error: {one_line(request.with_probe)}: {error}")
            return FAILED
    try:
        baseline = (
            None
            if request.baseline is None
            else open_baseline(request.baseline, write=request.write_baseline)
        )
    except UnusableBaseline as error:
        return _unusable_baseline(request, error)
    session = run_session(request, settings)
    reported, failures = session.findings(), session.failures()
    if request.with_probe is not None:
        from shapefix.runtime.confirmation.confirm import Confirmer

        reported = Confirmer(record, session.data).judged(reported)
    if any(map(is_notebook, session.files)):
        from shapefix.diagnosis.stored_findings import with_stored_errors

        reported = with_stored_errors(session, reported)
    if baseline is not None:
        found = without_answers(reported)
        if request.write_baseline:
            try:
                baseline.write(session, settings, found)
            except UnusableBaseline as error:
                return _unusable_baseline(request, error)
            report_failures(failures, View(os.getcwd()))
            return exit_code(False, bool(failures))
        new = set(
            map(
                id,
                baseline.new_findings(session, settings, found, quiet=request.quiet, verbose=request.verbose),
            )
        )
        reported = tuple(each for each in reported if each.is_answer or id(each) in new)
    findings = tuple(finding for finding in without_answers(reported) if not finding.is_refuted)
    view = view_of(request, settings, session)
    if request.statistics:
        from shapefix.report import statistics

        write(statistics.render(findings, view))
        report_failures(failures, view)
    else:
        hidden = session.hidden() if request.verbose else ()
        write(output_format.render((*reported, *hidden), failures, view))
    report_notes(request, session, view, output_format)
    return exit_code(bool(findings), bool(failures), request.exit_zero)


def _unusable_baseline(request: CheckRequest, error: UnusableBaseline) -> int:
    echo_err(f"error: {one_line(request.baseline or '')}: {error}")
    return FAILED


def run_session(request: CheckRequest, settings: Settings) -> CheckSession:
    standard_input = None
    if request.reads_stdin:
        standard_input = StandardInput(read_input(), request.stdin_filename)
    with ProgressBar("Checking", sys.stderr, request.quiet) as progress:
        session = CheckSession(request.paths, settings, standard_input, progress).run()
    if not request.quiet:
        view = View(os.getcwd())
        report_skipped_links(session.links_outside, view, request.verbose)
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
    return FixOffer.APPLIED if settings.fixes(path, fix) else FixOffer.NEEDS_OPTION


def format_of(request: CheckRequest, settings: Settings) -> FindingFormat:
    """Return the output format of the command line, the configuration, or the default."""
    if request.output_format is not None:
        return FINDING_FORMATS[request.output_format]
    configuration = settings.configurations.nearest(os.path.realpath(os.curdir))
    chosen = configuration.output_format or "full"
    if chosen not in FINDING_FORMATS:
        hint = suggestion(chosen, FINDING_FORMATS, f"; choose from {', '.join(FINDING_FORMATS)}")
        raise ConfigurationError(f"{configuration.path}: output-format: unknown format {chosen!r}{hint}")
    return FINDING_FORMATS[chosen]


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


def _show(request: CheckRequest, settings: Settings) -> int:
    """List the files or the settings of a check without running it."""
    name = StandardInput(b"", request.stdin_filename) if request.reads_stdin else None
    found = discovered_files(request.paths, settings, name)
    view = View(os.getcwd())
    if request.show_files:
        for path in found.files:
            sys.stdout.write(one_line(view.absolute(path)) + "\n")
    if request.show_settings:
        seen: set[str | None] = set()
        folders = [os.path.realpath(each) for each in request.paths if os.path.isdir(each)]
        for path in map(real_path, found.files):
            configuration = settings.configuration(path)
            if configuration.path in seen:
                continue
            seen.add(configuration.path)
            root = requirements_root(project_root_of(path, folders), folders)
            shown = _settings(configuration.path, path, root, settings)
            write(one_line(line) + "\n" for line in shown)
    report_failures(found.failures, view)
    if not request.quiet:
        report_skipped_links(found.outside, view, verbose=True)
    return FAILED if found.failures else CLEAN


def _settings(source: str | None, path: str, root: str, settings: Settings) -> Iterable[str]:
    """Render the settings of one configuration file, as they apply to the file at path.

    root is the last folder with requirements for it.
    """
    configuration = settings.configuration(path)
    yield f"# {source or 'defaults, without a configuration file'}\n"
    yield f"root = {configuration.root}\n"
    yield f"rules = {', '.join(sorted(settings.rules_of(configuration))) or 'none'}\n"
    yield f"exclude = {', '.join(configuration.exclude + configuration.extend_exclude)}\n"
    for pattern, selectors in configuration.per_file_ignores:
        yield f"per-file-ignores = {pattern}: {', '.join(selectors)}\n"
    yield f"unsafe-fixes = {str(settings.unsafe_fixes(path)).lower()}\n"
    yield f"preview = {str(settings.preview(path)).lower()}\n"
    version = settings.transformers_version(path, root)
    yield f"transformers-version = {version or 'newest'}\n"
    yield f"cache-dir = {settings.cache_dir(path) or 'none'}\n"
