"""The format `rdjson`: reviewdog's diagnostics, with repairs as suggestions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shapefix.diagnostics import Applicability, Diagnostic, Failure, Severity, Span, cell_of
from shapefix.report.edited_text import joined_edit, rows_of
from shapefix.report.json import portable_json
from shapefix.report.view import View, with_cell, with_circumstances

_SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}


def render(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> Iterator[str]:
    """Render one result. Columns count bytes of UTF-8, as reviewdog does."""
    diagnostics = [
        *(_finding(finding, view) for finding in findings),
        *(_failure(failure, view) for failure in failures),
    ]
    yield portable_json({"source": {"name": "shapefix"}, "diagnostics": diagnostics}) + "\n"


def _finding(finding: Diagnostic, view: View) -> dict[str, object]:
    span = finding.span
    cell = cell_of(span.path)
    entry: dict[str, object] = {
        "message": with_cell(span.path, span.row, with_circumstances(finding, finding.text, "\n")),
        "severity": "INFO" if finding.is_refuted else _SEVERITIES[finding.severity],
        "code": {"value": finding.code},
    }
    if cell is not None:  # the rows of a cell are not those of the notebook's file
        return {**entry, "location": {"path": view.relative(cell[0])}}
    entry["location"] = {"path": view.relative(span.path), "range": _range(span, view)}
    suggestion = _suggestion(finding, view)
    return entry if suggestion is None else {**entry, "suggestions": [suggestion]}


def _suggestion(finding: Diagnostic, view: View) -> dict[str, object] | None:
    """Return the fix as one edit: reviewdog offers each suggestion alone."""
    fix, text = finding.fix, view.sources(finding.span.path)
    if fix is None or fix.applicability is Applicability.DISPLAY or text is None:
        return None
    if any(edit.span.path != finding.span.path for edit in fix.edits):
        return None
    edit = joined_edit(fix, text)
    return None if edit is None else {"range": _range(edit.span, view), "text": edit.content}


def _range(span: Span, view: View) -> dict[str, object]:
    text = view.sources(span.path)
    rows = [] if text is None else rows_of(text)
    return {
        "start": {"line": span.row, "column": _byte_column(rows, span.row, span.column)},
        "end": {"line": span.end_row, "column": _byte_column(rows, span.end_row, span.end_column)},
    }


def _byte_column(rows: Sequence[str], row: int, column: int) -> int:
    if row > len(rows):
        return column
    return len(rows[row - 1][: column - 1].encode("utf-8", "surrogatepass")) + 1


def _failure(failure: Failure, view: View) -> dict[str, object]:
    cell = cell_of(failure.path)
    if cell is not None:
        message = with_cell(failure.path, failure.row, failure.message)
        return {"message": message, "severity": "ERROR", "location": {"path": view.relative(cell[0])}}
    location: dict[str, object] = {"path": view.relative(failure.path)}
    if failure.row is not None:
        column = {} if failure.column is None else {"column": failure.column}
        location["range"] = {"start": {"line": failure.row, **column}}
    return {"message": failure.message, "severity": "ERROR", "location": location}
