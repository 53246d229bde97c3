"""The exit codes of `probe`."""

from __future__ import annotations

from shapefix.runtime.findings.collect import CRASH, ProbeFindings
from shapefix.runtime.run import ProbeRun

CLEAN, FOUND, FAILED = 0, 1, 2


def code_of(run: ProbeRun, found: ProbeFindings) -> int:
    """The exit code for a run: FAILED if it only shows a crash before any model."""
    if found.diagnostics and (run.reached or any(each.code != CRASH for each in found.diagnostics)):
        return FOUND
    if found.diagnostics:
        return FAILED
    return CLEAN if run.complete or (found.early_stop_artifact is not None and run.trained) else FAILED
