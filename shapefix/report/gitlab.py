"""The format `gitlab`: a code quality report, shown by GitLab in merge requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

from shapefix.diagnostics import Diagnostic, Failure, Severity, cell_of
from shapefix.report.fingerprints import fingerprints
from shapefix.report.json import portable_json
from shapefix.report.view import View, with_cell

_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFO: "info"}


def render(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> Iterator[str]:
    """Render an entry for each finding and each failure. Paths are relative to the current folder."""
    entries = [
        _entry(
            finding.code,
            f"{finding.code}: {finding.text}"
            + (f"; fails when: {finding.condition.text}" if finding.condition else ""),
            "info" if finding.is_refuted else _SEVERITIES[finding.severity],
            fingerprint,
            (finding.span.path, finding.span.row, finding.span.end_row),
            view,
        )
        for finding, fingerprint in zip(findings, fingerprints(findings, view), strict=True)
    ]
    for failure in failures:
        words = f"{view.relative(failure.path)}\0{failure.message}"
        fingerprint = sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        row = failure.row or 1
        entries.append(
            _entry("shapefix", failure.message, "blocker", fingerprint, (failure.path, row, row), view)
        )
    yield portable_json(entries) + "\n"


def _entry(
    rule: str,
    description: str,
    severity: str,
    fingerprint: str,
    place: tuple[str, int, int],
    view: View,
) -> dict[str, object]:
    path, first, last = place
    cell = cell_of(path)
    if cell is not None:  # the rows of a cell are not those of the notebook's file
        description = with_cell(path, first, description)
        path, first, last = cell[0], 1, 1
    return {
        "description": description,
        "check_name": rule,
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {"path": view.relative(path), "lines": {"begin": first, "end": last}},
    }
