"""Repair the cause of an error, as `shapefix fix` would."""

from __future__ import annotations

from collections.abc import Callable

from shapefix.diagnosis.diagnose import Diagnosis
from shapefix.diagnosis.project_frames import file_of, is_installed
from shapefix.diagnostics import Failure
from shapefix.engine.repairs import FileRepair
from shapefix.repair.difference import unified
from shapefix.report.view import View


def repaired_cause(
    diagnosis: Diagnosis, write: Callable[[str, bytes, bytes], None] | None = None
) -> FileRepair | Failure | str:
    """Return the repair of the first cause, or the reason against it; write is as for repair_files."""
    if not diagnosis.causes or diagnosis.session is None:
        return "there is no cause"
    finding = diagnosis.causes[0].finding
    if is_installed(file_of(finding.span.path)):
        return "the file is not yours"
    found = diagnosis.session.repair_finding(finding, write)
    if found is None:
        return "there is no automatic fix"
    if isinstance(found, FileRepair) and not found.applied:
        return found.rejected[0][1] if found.rejected else "the fix changes nothing"
    return found


def patch(diagnosis: Diagnosis, view: View) -> list[str]:
    """Return the diff of the first cause's repair, with newlines; none without a repair."""
    repaired = repaired_cause(diagnosis)
    if not isinstance(repaired, FileRepair):
        return []
    return [line for path, old, new in repaired.changes for line in unified(view.relative(path), old, new)]
