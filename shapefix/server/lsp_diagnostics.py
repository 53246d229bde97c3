"""Findings as diagnostics of the protocol."""

from __future__ import annotations

from collections.abc import Callable

from lsprotocol import types

from shapefix.diagnostics import Diagnostic, Failure, Severity, Span
from shapefix.rulebook.pages import page_of
from shapefix.server.open_texts import PositionedText

SOURCE = "shapefix"
_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFO: types.DiagnosticSeverity.Information,
}
_UNUSED_RESULTS = frozenset({"SF105", "SF601"})
"""Rules for a computed result that nothing uses; editors fade it."""
_REMOVED = frozenset({"SF407"})
"""Rules for what newer versions of a library do not have; editors strike it through."""

Located = Callable[[Span], types.Location | None]
"""The location of a span in any file, None for a file that cannot be read."""


def lsp_diagnostic(finding: Diagnostic, text: PositionedText, located: Located) -> types.Diagnostic:
    """Return the diagnostic of a finding in a text, with its evidence as related information."""
    related: dict[tuple[str, str], types.DiagnosticRelatedInformation] = {}
    for step in finding.evidence:
        where = located(step.span)
        if where is not None:
            key = (str(where), step.message)
            related.setdefault(key, types.DiagnosticRelatedInformation(where, step.message))
    page = page_of(finding.code)
    return types.Diagnostic(
        range=text.range(finding.span),
        message=message_of(finding),
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=None if page is None else types.CodeDescription(page.path.as_uri()),
        source=SOURCE,
        tags=_tags(finding) or None,
        related_information=list(related.values()) or None,
    )


def message_of(finding: Diagnostic) -> str:
    """Return the message, the condition and the reservation of a finding, each in its own line."""
    lines = [finding.text]
    if finding.condition is not None:
        lines.append(f"fails when: {finding.condition.text}")
    if finding.reservation:
        lines.append(f"assumption: {finding.reservation}")
    if finding.unused:
        lines.append(f"nothing in the project uses {finding.unused}")
    return "\n".join(lines)


def _tags(finding: Diagnostic) -> list[types.DiagnosticTag]:
    tags = []
    if finding.unused or finding.code in _UNUSED_RESULTS:
        tags.append(types.DiagnosticTag.Unnecessary)
    if finding.code in _REMOVED:
        tags.append(types.DiagnosticTag.Deprecated)
    return tags


def failure_diagnostic(failure: Failure, text: PositionedText) -> types.Diagnostic:
    """Return the diagnostic of an unchecked file: at its syntax error, or at its first row."""
    row, column = failure.row or 1, failure.column or 1
    start = text.position(row, column)
    is_placed = failure.row is not None
    return types.Diagnostic(
        range=types.Range(start, text.position(row, column + 1) if is_placed else text.row_end(1)),
        message=failure.message,
        severity=types.DiagnosticSeverity.Error if is_placed else types.DiagnosticSeverity.Warning,
        source=SOURCE,
    )
