"""The format `pylint`: `path:row: [SF101] message`, for readers of pylint's output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shapefix.diagnostics import Diagnostic, Failure
from shapefix.report.view import View, one_line


def render(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> Iterator[str]:
    """Render a line for each finding and each failure."""
    for finding in findings:
        place = f"{one_line(view.relative(finding.span.path))}:{finding.span.row}"
        seen = "" if finding.confirmation is None else f" ({finding.confirmation.verdict.value})"
        yield f"{place}: [{finding.code}] {one_line(finding.text)}{seen}\n"
    for failure in failures:
        place = f"{one_line(view.relative(failure.path))}:{failure.row or 1}"
        yield f"{place}: [error] {one_line(failure.message)}\n"
