"""`shapefix check --changed`: only findings in changed lines."""

from __future__ import annotations

import os
from collections.abc import Sequence

from shapefix.cli.output import counted
from shapefix.cli.request import CheckRequest
from shapefix.cli.terminal import UnusableFile, echo_err
from shapefix.diagnostics import Diagnostic, Span
from shapefix.engine.changed_lines import CommitComparison, ComparisonFailed, compare
from shapefix.engine.session import CheckSession
from shapefix.engine.source_overlay import real_path
from shapefix.report.view import one_line


def open_comparison(request: CheckRequest, reference: str) -> CommitComparison:
    """Compare the repository of the first path with a reference. Raises UnusableFile."""
    try:
        return compare(os.path.realpath(request.paths[0]), reference)
    except ComparisonFailed as error:
        raise UnusableFile("--changed", one_line(str(error))) from None


def only_changed(
    comparison: CommitComparison, session: CheckSession, reported: Sequence[Diagnostic], request: CheckRequest
) -> tuple[Diagnostic, ...]:
    """Return the findings with a changed line: their own, or that of a step of their evidence.

    Raises UnusableFile.
    """
    places: dict[str, frozenset[tuple[str, int]]] = {}

    def is_changed(span: Span) -> bool:
        path = session.real_path(span.path)
        if path not in places:
            places[path] = _changed_places(comparison, session, path)
        return any((span.path, row) in places[path] for row in range(span.row, span.end_row + 1))

    try:
        outside = next((each for each in session.files if not _is_inside(comparison, each)), None)
        if outside is not None:
            raise ComparisonFailed(f"{outside} is not in the repository {comparison.root}")
        kept = tuple(
            finding
            for finding in reported
            if is_changed(finding.span) or any(is_changed(step.span) for step in finding.evidence)
        )
    except ComparisonFailed as error:
        raise UnusableFile("--changed", one_line(str(error))) from None
    dropped = sum(not each.is_answer for each in reported) - sum(not each.is_answer for each in kept)
    if dropped and not request.quiet:
        echo_err(f"note: {counted(dropped, 'finding')} in unchanged lines not shown")
    return kept


def _changed_places(
    comparison: CommitComparison, session: CheckSession, path: str
) -> frozenset[tuple[str, int]]:
    """Return the changed rows of a file by absolute path, as findings have them."""
    text = session.source(session.shown_path(path))
    if text is None:
        return frozenset()
    return frozenset(session.place(path, row) for row in comparison.changed_rows(path, text))


def _is_inside(comparison: CommitComparison, path: str) -> bool:
    return real_path(path).startswith(comparison.root.rstrip(os.sep) + os.sep)
