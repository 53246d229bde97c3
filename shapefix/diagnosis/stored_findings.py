"""Compare the findings in notebooks with the errors in their outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shapefix.diagnosis.causes import causes
from shapefix.diagnosis.error_reports import ErrorReport
from shapefix.diagnosis.explanations import explain_message
from shapefix.diagnosis.notebook_cells import read_cells
from shapefix.diagnosis.project_frames import FrameSources, ProjectFrame
from shapefix.diagnosis.stored_reports import StoredReport, stored_reports
from shapefix.diagnostics import (
    STORED_ERROR,
    Confirmation,
    Diagnostic,
    Evidence,
    Role,
    RunVerdict,
    Severity,
    Span,
    cell_of,
    in_run_order,
    path_of,
)
from shapefix.engine.session import CheckSession
from shapefix.engine.source_overlay import real_path
from shapefix.sources.notebook_outputs import RunCell
from shapefix.sources.relevance import mentions_library
from shapefix.sources.text import is_notebook

_LONGEST = 160
"""The most characters of a message in a finding."""


def with_stored_errors(session: CheckSession, findings: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Confirm findings by stored errors, and add the other known errors as info.

    Errors of lines that have changed since are left out. A finding becomes info, too, if the author ran the
    next cell after its error: it is known, and often there to be seen.
    """
    confirmed: dict[tuple[str, Span], Confirmation] = {}
    added: dict[Span, Diagnostic] = {}
    shown_on_purpose: set[tuple[str, Span]] = set()
    for path in filter(is_notebook, session.files):
        data = session.data(path) or b""
        if (b'"error"' not in data and b'"pyerr"' not in data) or not mentions_library(data):
            continue
        sources = FrameSources(".", real_path(path))
        cells = read_cells(path)
        for stored in stored_reports(cells):
            frames = _own_frames(stored, sources, session)
            if not frames:
                continue
            found = causes(stored.report, frames, findings)
            note = _note(stored.report, frames)
            if found and found[0].is_at_failing_line:
                cause = found[0].finding
                if note is not None and len(frames) == 1 and _was_left(stored.cell, cells):
                    shown_on_purpose.add((cause.code, cause.span))
                    added[note.span] = note
                    continue
                reason = f"cell {stored.cell.number} raised this error when it last ran"
                confirmed[cause.code, cause.span] = Confirmation(RunVerdict.CONFIRMED, reason)
            elif note is not None:
                added[note.span] = note
    if not confirmed and not added:
        return tuple(findings)
    kept = (
        replace(each, confirmation=confirmed.get((each.code, each.span), each.confirmation))
        for each in findings
        if (each.code, each.span) not in shown_on_purpose
    )
    return tuple(in_run_order([*kept, *added.values()]))


def _was_left(failed: RunCell, cells: Sequence[RunCell]) -> bool:
    """Whether the next cell with a count ran after a failed one."""
    later = (cell.count for cell in cells if cell.number > failed.number and cell.count is not None)
    following = next(later, None)
    return failed.count is not None and following is not None and following > failed.count


def _own_frames(
    stored: StoredReport, sources: FrameSources, session: CheckSession
) -> tuple[ProjectFrame, ...]:
    """Return the frames of a stored error, with paths as in findings; none if code has changed."""
    if stored.report.is_consequence:
        return ()
    held = sources.held_by(stored.cell.number)
    frames = held.frames(held.located(stored.report))
    if any(frame.is_missing or frame.is_changed for frame in frames):
        return ()
    return tuple(replace(frame, span=_in_findings(frame.span, session)) for frame in frames)


def _in_findings(span: Span, session: CheckSession) -> Span:
    """Return a span with the path of findings, without the indentation of its first row."""
    cell = cell_of(span.path)
    path = session.shown_path(span.path) if cell is None else path_of(session.shown_path(cell[0]), cell[1])
    rows = (session.source(path) or "").split("\n")
    first, last = "".join(rows[span.row - 1 : span.row]), "".join(rows[span.end_row - 1 : span.end_row])
    column = len(first) - len(first.lstrip()) + 1
    return Span(path, span.row, column, span.end_row, max(len(last.rstrip()), 1) + 1)


def _note(report: ErrorReport, frames: Sequence[ProjectFrame]) -> Diagnostic | None:
    """Return a known error of a library as info at its own line."""
    explanation = explain_message(report.message, report.name)
    if explanation is None or explanation.is_general or report.type == "":
        return None
    message = " ".join(f"{report.name}: {report.message}".split())
    shown = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"
    return Diagnostic(
        STORED_ERROR,
        explanation.name,
        Severity.INFO,
        f"this raised `{shown}` when it last ran",
        frames[-1].span,
        (*_calls(frames), Evidence(frames[-1].span, explanation.what, Role.FAILURE)),
    )


def _calls(frames: Sequence[ProjectFrame]) -> Iterator[Evidence]:
    for frame in frames[:-1]:
        yield Evidence(frame.span, "called here", Role.CALL, " ".join(frame.frame.text.split()))
