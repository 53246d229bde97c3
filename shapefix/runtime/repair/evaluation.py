"""Evaluate a repair by the run of the repaired copy."""

from __future__ import annotations

import os
from enum import Enum

from shapefix.diagnostics import Diagnostic
from shapefix.runtime.repair.patched_sources import AppliedRepair
from shapefix.runtime.repair.trials import RepairTrial


class RepairOutcome(Enum):
    """The effect of a repair; the value is its text in reports."""

    PASSED = "the finding is gone, and the script trains"
    PROGRESS = "the finding is gone, and the script gets further"
    NEXT_FAILURE = "the finding is gone, and the next failure follows directly"
    PERSISTS = "the finding is still there"
    EARLIER_FAILURE = "another failure comes before it"
    BREAKS_TRAINING = "the script does not train with this repair"

    @property
    def is_accepted(self) -> bool:
        """Whether to continue with the repair."""
        return self in (RepairOutcome.PASSED, RepairOutcome.PROGRESS, RepairOutcome.NEXT_FAILURE)


def trains(trial: RepairTrial, first: RepairTrial) -> bool:
    """Whether a run shows that a copy trains; first is the run of the unchanged script.

    A copy that only evaluates is accepted if the unchanged script does not train either.
    """
    if not trial.is_whole or trial.blocking:
        return False
    return trial.run.trained or trial.with_gradient or not first.with_gradient


def evaluate_repair(
    before: RepairTrial, failing: Diagnostic, after: RepairTrial, step: AppliedRepair, first: RepairTrial
) -> RepairOutcome:
    """The effect of a repair for a finding of the run before it.

    step are the changes of the repair; first is the run of the unchanged script.
    """
    if persists(failing, after, step):
        return RepairOutcome.PERSISTS
    known = before.found.diagnostics
    new = [each for each in after.found.diagnostics if not any(_same(old, each, step) for old in known)]
    reach = before.reach(failing)
    if any(after.reach(each) < reach for each in new):
        return RepairOutcome.EARLIER_FAILURE
    if trains(after, first):
        return RepairOutcome.PASSED
    if not after.found.diagnostics:  # an end without information
        return RepairOutcome.BREAKS_TRAINING
    nearest = min((after.reach(each) for each in new), default=None)
    return RepairOutcome.PROGRESS if nearest is None or nearest > reach else RepairOutcome.NEXT_FAILURE


def persists(failing: Diagnostic, after: RepairTrial, step: AppliedRepair) -> bool:
    """Whether a finding of the run before a repair is also in the run after it."""
    return any(_same(failing, each, step) for each in after.found.diagnostics)


def _same(old: Diagnostic, new: Diagnostic, step: AppliedRepair) -> bool:
    return (
        (old.code, old.name, old.message) == (new.code, new.name, new.message)
        and os.path.realpath(old.span.path) == os.path.realpath(new.span.path)
        and new.span.row in step.rows(old.span)
    )
