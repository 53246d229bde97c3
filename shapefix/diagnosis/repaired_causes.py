"""Repair the cause of an error, as `shapefix fix` would."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from shapefix.diagnosis.diagnose import Diagnosis
from shapefix.diagnosis.project_frames import file_of, is_installed
from shapefix.diagnosis.whole_texts import whole_text
from shapefix.diagnostics import TRACED_ERROR, Diagnostic, Edit, Failure, Span
from shapefix.engine.repairs import FileRepair
from shapefix.repair.difference import unified
from shapefix.repair.edits import InvalidEdit, apply
from shapefix.repair.writes import LeftAlone
from shapefix.report.view import View
from shapefix.sources.text import Unreadable, reason


def repaired_cause(
    diagnosis: Diagnosis, write: Callable[[str, bytes, bytes], None] | None = None
) -> FileRepair | Failure | str:
    """Return the repair of the first cause, or the reason against it; write is as for repair_files."""
    if not diagnosis.causes or diagnosis.session is None:
        return "there is no cause"
    finding = diagnosis.causes[0].finding
    if is_installed(file_of(finding.span.path)):
        return "the file is not yours"
    if finding.code == TRACED_ERROR:
        return _repaired_without_check(finding, write)
    found = diagnosis.session.repair_finding(finding, write)
    if found is None:
        return "there is no automatic fix"
    if isinstance(found, FileRepair) and not found.applied:
        return found.rejected[0][1] if found.rejected else "the fix changes nothing"
    return found


def _repaired_without_check(
    finding: Diagnostic, write: Callable[[str, bytes, bytes], None] | None
) -> FileRepair | Failure | str:
    """Apply the fix of a traced cause; the new text has to be Python."""
    if finding.fix is None:
        return "there is no automatic fix"
    path = finding.fix.edits[0].span.path
    try:
        whole = whole_text(path)
        before = whole.rows_before
        edits = tuple(Edit(_moved(each.span, before), each.content) for each in finding.fix.edits)
        text, _, _ = apply(whole.text, [replace(finding.fix, edits=edits)])
        ast.parse(text)
        repaired = FileRepair(whole.source, replace(whole.source, text=text), (finding,), ())
        if write is not None:
            write(whole.source.path, repaired.new.encode(), repaired.old.encode())
    except (Unreadable, LeftAlone) as error:
        return Failure(path, f"cannot be repaired: {error}")
    except OSError as error:
        return Failure(path, f"cannot be written: {reason(error)}")
    except (InvalidEdit, SyntaxError, ValueError, RecursionError) as error:
        return f"the repair does not fit the file: {error}"
    return repaired


def _moved(span: Span, rows: int) -> Span:
    """Return the place of a cell's row in the whole text of its notebook."""
    return replace(span, path=file_of(span.path), row=span.row + rows, end_row=span.end_row + rows)


def patch(diagnosis: Diagnosis, view: View) -> list[str]:
    """Return the diff of the first cause's repair, with newlines; none without a repair."""
    repaired = repaired_cause(diagnosis)
    if not isinstance(repaired, FileRepair):
        return []
    return [line for path, old, new in repaired.changes for line in unified(view.relative(path), old, new)]
