"""The format `sarif`: SARIF 2.1.0, for code scanning and for editors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from shapefix import __version__
from shapefix.diagnostics import (
    REVEAL,
    Applicability,
    Diagnostic,
    Failure,
    Fix,
    Role,
    Severity,
    Span,
    Unchecked,
    cell_of,
)
from shapefix.report.fingerprints import fingerprints
from shapefix.report.json import portable_json
from shapefix.report.view import View, with_cell, with_circumstances
from shapefix.rulebook.pages import MissingPages, Page, pages_by_code

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_ROOT = "SRCROOT"
"""The name of the folder that relative URIs are below."""


def render(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> Iterator[str]:
    """Render one log of one run; unchecked files are notifications of the run."""
    pages = _pages()
    rules = {
        code: number for number, code in enumerate(sorted({each.code for each in findings} & pages.keys()))
    }
    results = [
        _result(finding, fingerprint, rules, view)
        for finding, fingerprint in zip(findings, fingerprints(findings, view), strict=True)
    ]
    notifications = [
        *(_notification(each, "error", view) for each in failures),
        *(_notification(each, "note", view) for each in view.unchecked),
    ]
    run = {
        "tool": {
            "driver": {
                "name": "shapefix",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(pages[code]) for code in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"uri": _absolute_uri(view.absolute(".")).rstrip("/") + "/"}},
        "invocations": [
            {"executionSuccessful": not failures, "toolExecutionNotifications": notifications},
        ],
        "results": results,
    }
    yield portable_json(
        {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    )
    yield "\n"


def _pages() -> Mapping[str, Page]:
    try:
        return pages_by_code()
    except MissingPages:
        return {}


def _rule(page: Page) -> dict[str, object]:
    """Return a rule with its page as help."""
    text = page.text(examples=False)
    return {
        "id": page.code,
        "name": page.name,
        "shortDescription": {"text": page.summary},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": _LEVELS[page.severity], "enabled": page.by_default},
    }


def _result(finding: Diagnostic, fingerprint: str, rules: Mapping[str, int], view: View) -> dict[str, object]:
    is_note = finding.is_refuted or finding.severity is Severity.INFO
    result: dict[str, object] = {"ruleId": finding.code}
    if finding.code in rules:
        result["ruleIndex"] = rules[finding.code]
    if finding.code == REVEAL:
        result |= {"kind": "informational", "level": "none"}
    else:
        result["level"] = "note" if is_note else _LEVELS[finding.severity]
    result |= {
        "message": {"text": _message(finding)},
        "locations": [_location(finding.span, view)],
        "partialFingerprints": {"shapefix/v1": fingerprint},
    }
    if finding.evidence:
        steps = [
            {
                "location": _location(step.span, view, step.message),
                "importance": "essential" if step.role in (Role.CAUSE, Role.FAILURE) else "important",
                "executionOrder": number,
            }
            for number, step in enumerate(finding.evidence, 1)
        ]
        result["codeFlows"] = [{"threadFlows": [{"locations": steps}]}]
    fixes = [_fix(fix, view) for fix in finding.fixes if _is_expressible(fix)]
    if fixes:
        result["fixes"] = fixes
    properties: dict[str, object] = {}
    if finding.condition is not None:
        properties["condition"] = finding.condition.text
    if finding.error is not None:
        properties["error"] = str(finding.error)
    if finding.fix is not None:
        properties["applicability"] = finding.fix.applicability.value
    if properties:
        result["properties"] = properties
    return result


def _message(finding: Diagnostic) -> str:
    """Return the message; for a notebook with the place in its cell."""
    text = with_cell(finding.span.path, finding.span.row, finding.text)
    return with_circumstances(finding, text, "\n")


def _is_expressible(fix: Fix) -> bool:
    """Whether a fix has edits of files; those of a cell are not at rows of the notebook's file."""
    return fix.applicability is not Applicability.DISPLAY and not any(
        cell_of(edit.span.path) for edit in fix.edits
    )


def _fix(fix: Fix, view: View) -> dict[str, object]:
    by_path: dict[str, list[dict[str, object]]] = {}
    for edit in fix.edits:
        by_path.setdefault(edit.span.path, []).append(
            {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.content}}
        )
    return {
        "description": {"text": fix.message},
        "artifactChanges": [
            {"artifactLocation": _artifact(path, view), "replacements": replacements}
            for path, replacements in by_path.items()
        ],
    }


def _location(span: Span, view: View, message: str | None = None) -> dict[str, object]:
    """Return a place; one in a notebook is line 1 of its file, and has the cell as its logical location."""
    cell = cell_of(span.path)
    where: dict[str, object]
    if cell is None:
        where = {
            "physicalLocation": {
                "artifactLocation": _artifact(span.path, view),
                "region": _region(span),
            }
        }
    else:
        name = f"cell {cell[1]}"
        where = {
            "physicalLocation": {
                "artifactLocation": _artifact(cell[0], view),
                "region": {"startLine": 1},
            },
            "logicalLocations": [
                {
                    "name": name,
                    "fullyQualifiedName": f"{view.relative(span.path)}:{span.row}:{span.column}",
                }
            ],
        }
    return where if message is None else {**where, "message": {"text": message}}


def _region(span: Span) -> dict[str, object]:
    return {
        "startLine": span.row,
        "startColumn": span.column,
        "endLine": span.end_row,
        "endColumn": span.end_column,
    }


def _artifact(path: str, view: View) -> dict[str, object]:
    """Return the location of a file, relative to the root of the run if it is below it."""
    shown = view.relative(path)
    if shown.startswith("/") or (os.sep != "/" and view.absolute(path) == shown):
        return {"uri": _absolute_uri(shown)}
    return {"uri": _quoted(shown), "uriBaseId": _ROOT}


def _absolute_uri(path: str) -> str:
    quoted = _quoted(path)
    return f"file://{quoted}" if quoted.startswith("/") else f"file:///{quoted}"


def _quoted(path: str) -> str:
    return quote(os.fsencode(path.replace(os.sep, "/")))


def _notification(what: Failure | Unchecked, level: str, view: View) -> dict[str, object]:
    cell = cell_of(what.path)
    message = what.message
    place: dict[str, object] = {"artifactLocation": _artifact(what.path if cell is None else cell[0], view)}
    if cell is not None:
        message = f"cell {cell[1]}, row {what.row}: {message}" if what.row else f"cell {cell[1]}: {message}"
    elif what.row is not None:
        place["region"] = {"startLine": what.row} | ({"startColumn": what.column} if what.column else {})
    return {"level": level, "message": {"text": message}, "locations": [{"physicalLocation": place}]}
