"""The exit codes of all commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapefix.runtime.findings.collect import ProbeFindings
    from shapefix.runtime.run import ProbeRun

CLEAN, FOUND, FAILED = 0, 1, 2
INTERRUPTED = 130
BROKEN_PIPE = 141


def exit_code(found: bool, failed: bool, exit_zero: bool = False) -> int:
    """Return the exit code of `check` and `fix`: a failure counts more than a finding."""
    if failed:
        return FAILED
    return FOUND if found and not exit_zero else CLEAN


def code_of(run: ProbeRun, found: ProbeFindings) -> int:
    """Return the exit code of a probe run.

    A crash before any model is a failure, not a finding; so is what the machine lacks.
    """
    from shapefix.runtime.findings.collect import CRASH
    from shapefix.runtime.findings.environment import ENVIRONMENT

    own = [each for each in found.diagnostics if each.code != ENVIRONMENT]
    if own and (run.reached or any(each.code != CRASH for each in own)):
        return FOUND
    if found.diagnostics:
        return FAILED
    return CLEAN if run.complete or (found.early_stop_artifact is not None and run.trained) else FAILED
