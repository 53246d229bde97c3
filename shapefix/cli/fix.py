"""`shapefix fix`: show repairs as a diff, or write them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING

from shapefix.cli.check import format_of, report_notes, run_session, view_of, without_answers
from shapefix.cli.exit_codes import FOUND, exit_code
from shapefix.cli.output import counted, report_failures, report_rejected, report_unchanged, write, write_diff
from shapefix.cli.request import CheckRequest
from shapefix.cli.terminal import echo_err
from shapefix.diagnostics import Diagnostic, Failure, cell_of
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import Settings
from shapefix.report.view import View, one_line

if TYPE_CHECKING:
    from shapefix.engine.repairs import FileRepair
    from shapefix.report.formats import FindingFormat


_MOST_ROWS = 12
"""The largest number of listed lines of a repaired file."""


def fix(request: CheckRequest) -> int:
    """Show repairs, or apply them. Raises ConfigurationError."""
    settings = Settings(request.options)
    output_format = format_of(request, settings)
    session = run_session(request, settings)
    view = view_of(request, settings, session)
    if request.reads_stdin:
        return _fix_standard_input(request, session, view, output_format)
    if not request.apply:
        return _show(request, session, view, output_format)
    lists = not request.quiet or settings.configurations.nearest(view.folder).show_fixes
    return _apply(request, session, view, output_format, lists)


def add_noqa(request: CheckRequest, reason: str) -> int:
    """Write `# noqa` comments for all findings. Raises ConfigurationError."""
    from shapefix.repair import writes

    settings = Settings(request.options)
    session = run_session(request, settings)
    view = view_of(request, settings, session)
    added = files = 0
    for repair in session.suppress(reason, writes.write):
        report_rejected(repair.rejected, view)
        added += len(repair.applied)
        files += repair.old != repair.new
    failures = session.failures()
    report_failures(failures, view)
    if not request.quiet:
        echo_err(f"Suppressed {counted(added, 'finding')} in {counted(files, 'file')}.")
    return exit_code(False, bool(failures))


def _show(request: CheckRequest, session: CheckSession, view: View, output_format: FindingFormat) -> int:
    """Show the repairs as a diff; for programs, all findings with their fixes.

    `check --diff` is a diff in any format, and only fixes count for its exit code.
    """
    shows_diff = output_format.for_people or request.diff
    if not shows_diff:
        write(list(output_format.render(without_answers(session.findings()), session.failures(), view)))
    repairs: list[FileRepair] = []
    for repair in session.repair(None):
        report_rejected(repair.rejected, view)
        if repair.old != repair.new:
            repairs.append(repair)
            if shows_diff:
                for path, old, new in repair.changes:
                    write_diff(view, path, old, new)
    remaining, failures = without_answers(session.findings()), session.failures()
    if shows_diff:
        report_failures(failures, view)
    report_unchanged(session.outside(), view)
    if request.diff:
        remaining = ()
        if repairs and not request.quiet:
            echo_err(_diff_summary(repairs))
    else:
        if not request.quiet:
            echo_err(_summary(remaining, failures, view, repairs, wrote=False))
        report_notes(request, session, view, output_format)
    return exit_code(bool(repairs or remaining), bool(failures), request.exit_zero)


def _apply(
    request: CheckRequest, session: CheckSession, view: View, output_format: FindingFormat, lists: bool
) -> int:
    """Write the repairs, list them if requested, and report the remaining findings."""
    from shapefix.repair import writes

    # Programs that parse findings from stdout must not see anything else there.
    stream = sys.stdout if output_format.for_people else sys.stderr
    repairs: list[FileRepair] = []
    writes.remove_abandoned({Path(session.real_path(path)).parent for path in session.files})
    for repair in session.repair(writes.write):
        report_rejected(repair.rejected, view)
        if repair.old == repair.new:
            continue
        repairs.append(repair)
        if lists:
            path = one_line(view.relative(repair.old.path))
            counts = Counter(finding.code for finding in repair.applied)
            what = ", ".join(f"{number} x {code}" for code, number in sorted(counts.items()))
            stream.write(f"{path}: repaired {what}\n")
            for changed, old, new in repair.changes:
                cell = cell_of(changed)
                if cell is not None:
                    stream.write(f"  cell {cell[1]}\n")
                stream.writelines(f"{row}\n" for row in _new_rows(old, new))
    remaining, failures = without_answers(session.findings()), session.failures()
    view = replace(view, unchecked=session.unchecked())
    if request.fix_only:
        report_failures(failures, view)
        report_unchanged(session.outside(), view)
        if repairs and not request.quiet:
            stream.write(_diff_summary(repairs, "Repaired") + "\n")
        return _repaired_code(request, bool(repairs), False, bool(failures))
    write(output_format.render(remaining, failures, replace(view, quiet=True)))
    if not request.quiet:
        stream.write(_summary(remaining, failures, view, repairs, wrote=True) + "\n")
    report_unchanged(session.outside(), view)
    report_notes(request, session, view, output_format)
    return _repaired_code(request, bool(repairs), bool(remaining), bool(failures))


def _repaired_code(request: CheckRequest, changed: bool, remaining: bool, failed: bool) -> int:
    """Return the exit code after repairs."""
    if changed and request.exit_non_zero_on_fix and not failed:
        return FOUND
    return exit_code(remaining, failed, request.exit_zero)


def _diff_summary(repairs: Sequence[FileRepair], done: str = "Would repair") -> str:
    """Return the line of counts without the remaining findings."""
    repaired = sum(len(repair.applied) for repair in repairs)
    return f"{done} {counted(repaired, 'finding')} in {counted(len(repairs), 'file')}."


def _new_rows(old: str, new: str) -> Iterator[str]:
    """Yield the new code of a repaired text with its line numbers, at most that of some lines."""
    before, after = old.splitlines(), new.splitlines()
    changes = SequenceMatcher(None, before, after).get_opcodes()
    rows = [row for kind, _, _, first, last in changes if kind != "equal" for row in range(first, last)]
    digits = max((len(str(row + 1)) for row in rows), default=0)
    for row in rows[:_MOST_ROWS]:
        yield f"    {row + 1:>{digits}}: {one_line(after[row])}"
    if len(rows) > _MOST_ROWS:
        yield f"    and {counted(len(rows) - _MOST_ROWS, 'line')} more"


def _fix_standard_input(
    request: CheckRequest, session: CheckSession, view: View, output_format: FindingFormat
) -> int:
    """Write the repaired text to stdout and messages to stderr."""
    if request.diff:
        return _show(request, session, view, output_format)
    repairs: list[FileRepair] = []
    for repair in session.repair(None):
        report_rejected(repair.rejected, view)
        if repair.old != repair.new:
            repairs.append(repair)
    sys.stdout.flush()
    sys.stdout.buffer.write(session.standard_output())
    remaining, failures = without_answers(session.findings()), session.failures()
    if request.fix_only:
        remaining = ()
    if remaining or failures:
        sys.stderr.writelines(output_format.render(remaining, failures, replace(view, quiet=True)))
        if not request.quiet:
            echo_err(_summary(remaining, failures, view, repairs, wrote=True))
    return _repaired_code(request, bool(repairs), bool(remaining), bool(failures))


def _summary(
    remaining: Sequence[Diagnostic],
    failures: Sequence[Failure],
    view: View,
    repairs: Sequence[FileRepair],
    wrote: bool,
) -> str:
    from shapefix.report.summary import fix_summary

    repaired = sum(len(repair.applied) for repair in repairs)
    return fix_summary(remaining, failures, view, repaired, len(repairs), wrote)
