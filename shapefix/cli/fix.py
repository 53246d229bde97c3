"""`shapefix fix`: show repairs as a diff, or write them."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from shapefix.cli.check import examined, format_of, say_statistics, view_of, without_answers
from shapefix.cli.exit_codes import exit_code
from shapefix.cli.output import counted, say_failures, say_outside, say_refused, write, write_diff
from shapefix.cli.request import Request
from shapefix.cli.terminal import say
from shapefix.engine.session import Examination
from shapefix.engine.settings import Settings
from shapefix.report.view import View, one_line

if TYPE_CHECKING:
    from shapefix.report.formats import FindingFormat


def fix(request: Request) -> int:
    """Show repairs, or apply them. Raises ConfigurationError."""
    settings = Settings(request.options)
    output_format = format_of(request, settings)
    examination = examined(request, settings)
    view = view_of(request, settings, examination)
    if request.reads_stdin:
        return _fix_standard_input(request, examination, view, output_format)
    if request.apply:
        return _apply(request, examination, view, output_format)
    applied = 0
    files = 0
    for repair in examination.repair(None):
        say_refused(repair.refused, view)
        if repair.old != repair.new:
            applied += len(repair.applied)
            files += 1
            write_diff(view, repair.old.path, repair.old.text, repair.new.text)
    failures = examination.failures()
    say_failures(failures, view)
    say_outside(examination.outside(), view)
    if not request.quiet:
        from shapefix.report.summary import nothing_checked, remaining

        said = remaining(without_answers(examination.findings()), view)
        if files:
            said.insert(
                0, f"Would repair {counted(applied, 'finding')} in {counted(files, 'file')} with --apply."
            )
        elif not said and not failures:
            said.append(nothing_checked(view) or "Nothing to repair.")
        if said:
            say(" ".join(said))
    say_statistics(request, examination, view)
    return exit_code(bool(files), bool(failures), request.exit_zero)


def _apply(request: Request, examination: Examination, view: View, output_format: FindingFormat) -> int:
    from shapefix.repair import writes

    # Programs that parse findings from stdout must not see anything else there.
    stream = sys.stdout if output_format.for_people else sys.stderr
    repaired = files = 0
    for repair in examination.repair(writes.write):
        say_refused(repair.refused, view)
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
    findings, failures = without_answers(examination.findings()), examination.failures()
    if findings or failures or not files or not output_format.for_people:
        write(output_format.render(findings, failures, view))
    say_outside(examination.outside(), view)
    say_statistics(request, examination, view)
    return exit_code(bool(findings), bool(failures), request.exit_zero)


def _fix_standard_input(
    request: Request, examination: Examination, view: View, output_format: FindingFormat
) -> int:
    """Write the repaired text to stdout and messages to stderr."""
    for repair in examination.repair(None):
        say_refused(repair.refused, view)
    sys.stdout.flush()
    sys.stdout.buffer.write(examination.standard_output())
    findings, failures = without_answers(examination.findings()), examination.failures()
    if findings or failures:
        sys.stderr.writelines(output_format.render(findings, failures, view))
    return exit_code(bool(findings), bool(failures), request.exit_zero)
