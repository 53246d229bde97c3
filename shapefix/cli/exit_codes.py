"""The exit codes of probe."""

from __future__ import annotations

from shapefix.runtime.findings.collect import CRASH, Found
from shapefix.runtime.report.text_report import Run

CLEAN, FOUND, FAILED = 0, 1, 2


def code_of(run: Run, known: Found) -> int:
    """The exit code for a run: where only a crash before any model is known, it has failed."""
    if known.diagnostics and (run.reached or any(found.code != CRASH for found in known.diagnostics)):
        return FOUND
    if known.diagnostics:
        return FAILED
    return CLEAN if run.complete or (known.aftermath is not None and run.trained) else FAILED
