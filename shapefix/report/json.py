"""A JSON list of objects in the manner of ruff's, with the evidence and the condition of each finding."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from shapefix.diagnostics import Diagnostic, Failure, Fix, Span
from shapefix.report.view import View


def render(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> Iterator[str]:
    """One object for each finding, and one of the same shape for each failure: its code and name are null.

    Filenames are absolute; rows and columns count from 1, columns in code points, the end exclusive.
    """
    separator = "[\n"
    for entry in (*(_finding(each, view) for each in findings), *(_failure(each, view) for each in failures)):
        text = json.dumps(entry, indent=2, ensure_ascii=False)
        # A lone surrogate, as in the name of a file that is not UTF-8, cannot be written as it is.
        yield separator + (text if text.isascii() or _encodable(text) else json.dumps(entry, indent=2))
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _finding(finding: Diagnostic, view: View) -> dict[str, object]:
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "severity": finding.severity.value,
        "filename": view.absolute(finding.span.path),
        **_places(finding.span),
        "evidence": [
            {"filename": view.absolute(step.span.path), **_places(step.span), "message": step.message}
            for step in finding.evidence
        ],
        "condition": finding.condition,
        "fix": _fix(finding.fix),
    }


def _fix(fix: Fix | None) -> dict[str, object] | None:
    if fix is None:
        return None
    return {
        "applicability": fix.applicability.value,
        "message": fix.message,
        "edits": [{"content": edit.content, **_places(edit.span)} for edit in fix.edits],
    }


def _failure(failure: Failure, view: View) -> dict[str, object]:
    place = None if failure.row is None else {"row": failure.row, "column": failure.column or 1}
    return {
        "code": None,
        "name": None,
        "message": failure.message,
        "severity": "error",
        "filename": view.absolute(failure.path),
        "location": place,
        "end_location": place,
        "evidence": [],
        "condition": None,
        "fix": None,
    }


def _places(span: Span) -> dict[str, object]:
    return {
        "location": {"row": span.row, "column": span.column},
        "end_location": {"row": span.end_row, "column": span.end_column},
    }
