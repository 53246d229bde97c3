"""The format `json`: a list of objects like ruff's, with evidence and condition of each finding."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from shapefix.diagnostics import Diagnostic, Failure, Fix, Severity, Span, Unchecked, cell_of
from shapefix.report.view import View, json_text

_SURROGATE = re.compile("[\ud800-\udfff]")


def render(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> Iterator[str]:
    """Render an object per finding, and one of the same shape per failure with null as code and name.

    Places that could not be checked follow as well: code null, name "not-checked", severity "info".
    Filenames are absolute; rows and columns count from 1, columns in code points, the end exclusive.
    """
    separator = "[\n"
    for entry in (
        *(finding_entry(each, view) for each in findings),
        *(_failure(each, view) for each in failures),
        *(_unchecked(each, view) for each in view.unchecked),
    ):
        yield separator + dumped(entry)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def dumped(document: object) -> str:
    """Return a document as JSON for a terminal or a file, in ASCII if it cannot be encoded otherwise."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return json_text(text if encodable(text) else json.dumps(document, indent=2))


def portable_json(document: object) -> str:
    """Return a document as JSON for every parser: a lone surrogate, of a file name, is replaced."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return json_text(_SURROGATE.sub("\ufffd", text))


def encodable(text: str) -> bool:
    """Check whether a text can be encoded; lone surrogates in file names cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def finding_entry(finding: Diagnostic, view: View) -> dict[str, object]:
    """Return the object of a finding; it has `seen` if a probe run was used."""
    seen = finding.confirmation
    judged = {} if seen is None else {"seen": {"verdict": seen.verdict.value, "reason": seen.reason}}
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.text,
        "severity": finding.severity.value,
        **place(finding.span, view),
        "error": None if finding.error is None else str(finding.error),
        "cause": {"code": finding.cause.code, **place(finding.cause.span, view)},
        "evidence": [
            {**place(step.span, view), "message": step.message, "role": step.role.value}
            for step in finding.evidence
        ],
        "condition": None if finding.condition is None else finding.condition.text,
        "reservation": finding.reservation or None,
        "fix": _fix(finding.fix),
        **judged,
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
    return _without_code(failure, None, Severity.ERROR, view)


def _unchecked(unchecked: Unchecked, view: View) -> dict[str, object]:
    return _without_code(unchecked, "not-checked", Severity.INFO, view)


def _without_code(
    what: Failure | Unchecked, name: str | None, severity: Severity, view: View
) -> dict[str, object]:
    place = None if what.row is None else {"row": what.row, "column": what.column or 1}
    return {
        "code": None,
        "name": name,
        "message": what.message,
        "severity": severity.value,
        **file_of(what.path, view),
        "location": place,
        "end_location": place,
        "error": None,
        "cause": None,
        "evidence": [],
        "condition": None,
        "reservation": None,
        "fix": None,
    }


def place(span: Span, view: View) -> dict[str, object]:
    """Return the absolute path, start and end of a span, and the cell in a notebook."""
    return {**file_of(span.path, view), **_places(span)}


def file_of(path: str, view: View) -> dict[str, object]:
    """Return the absolute path of a file, and the cell in a notebook."""
    cell = cell_of(path)
    if cell is None:
        return {"filename": view.absolute(path)}
    return {"filename": view.absolute(cell[0]), "cell": cell[1]}


def _places(span: Span) -> dict[str, object]:
    return {
        "location": {"row": span.row, "column": span.column},
        "end_location": {"row": span.end_row, "column": span.end_column},
    }
