"""`shapefix fix`: show repairs as a diff, or write them."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from shapefix.cli.check import format_of, report_stats, run_session, view_of, without_answers
from shapefix.cli.exit_codes import exit_code
from shapefix.cli.output import counted, report_failures, report_rejected, report_unchanged, write, write_diff
from shapefix.cli.request import CheckRequest
from shapefix.cli.terminal import echo_err
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import Settings
from shapefix.report.view import View, one_line

if TYPE_CHECKING:
    from shapefix.report.formats import FindingFormat


def fix(request: CheckRequest) -> int:
    """Show repairs, or apply them. Raises ConfigurationError."""
    settings = Settings(request.options)
    output_format = format_of(request, settings)
    session = run_session(request, settings)
    view = view_of(request, settings, session)
    if request.reads_stdin:
        return _fix_standard_input(request, session, view, output_format)
    if request.apply:
        return _apply(request, session, view, output_format)
    applied = 0
    files = 0
    for repair in session.repair(None):
        report_rejected(repair.rejected, view)
        if repair.old != repair.new:
            applied += len(repair.applied)
            files += 1
            write_diff(view, repair.old.path, repair.old.text, repair.new.text)
    failures = session.failures()
    report_failures(failures, view)
    report_unchanged(session.outside(), view)
    if not request.quiet:
        from shapefix.report.summary import nothing_checked, remaining

        said = remaining(without_answers(session.findings()), view)
        if files:
            said.insert(
                0, f"Would repair {counted(applied, 'finding')} in {counted(files, 'file')} with --apply."
            )
        elif not said and not failures:
            said.append(nothing_checked(view) or "Nothing to repair.")
        if said:
            echo_err(" ".join(said))
    report_stats(request, session, view)
    return exit_code(bool(files), bool(failures), request.exit_zero)


def _apply(request: CheckRequest, session: CheckSession, view: View, output_format: FindingFormat) -> int:
    from shapefix.repair import writes

    # Programs that parse findings from stdout must not see anything else there.
    stream = sys.stdout if output_format.for_people else sys.stderr
    repaired = files = 0
    for repair in session.repair(writes.write):
        report_rejected(repair.rejected, view)
        if repair.old == repair.new:
            continue
        repaired += len(repair.applied)
        files += 1
        if not request.quiet:
            path = one_line(view.relative(repair.old.path))
            counts = Counter(finding.code for finding in repair.applied)
            what = ", ".join(f"{number} x {code}" for code, number in sorted(counts.items()))
            stream.write(f"{path}: repaired {what}\n")
    if not request.quiet and files:
        stream.write(f"Repaired {counted(repaired, 'finding')} in {counted(files, 'file')}.\n")
    findings, failures = without_answers(session.findings()), session.failures()
    if findings or failures or not files or not output_format.for_people:
        write(output_format.render(findings, failures, view))
    report_unchanged(session.outside(), view)
    report_stats(request, session, view)
    return exit_code(bool(findings), bool(failures), request.exit_zero)


def _fix_standard_input(
    request: CheckRequest, session: CheckSession, view: View, output_format: FindingFormat
) -> int:
    """Write the repaired text to stdout and messages to stderr."""
    for repair in session.repair(None):
        report_rejected(repair.rejected, view)
    sys.stdout.flush()
    sys.stdout.buffer.write(session.standard_output())
    findings, failures = without_answers(session.findings()), session.failures()
    if findings or failures:
        sys.stderr.writelines(output_format.render(findings, failures, view))
    return exit_code(bool(findings), bool(failures), request.exit_zero)
