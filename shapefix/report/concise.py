"""One line per finding, for editors and grep: `path:row:column: SF101 [*] message`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shapefix.diagnostics import Diagnostic, Failure
from shapefix.report.view import View, failure_line, one_line


def render(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> Iterator[str]:
    """Render a line for each finding and each failure.

    `[*]`: `shapefix fix` repairs it. `[confirmed]`, `[refuted]`, `[open]`: the verdict of a probe run.
    """
    for finding in findings:
        span = finding.span
        place = f"{one_line(view.relative(span.path))}:{span.row}:{span.column}"
        mark = " [*]" if view.fixable(finding) else ""
        seen = "" if finding.confirmation is None else f" [{finding.confirmation.verdict.value}]"
        yield f"{place}: {finding.code}{mark}{seen} {one_line(finding.text)}\n"
    for failure in failures:
        yield failure_line(failure, view) + "\n"
