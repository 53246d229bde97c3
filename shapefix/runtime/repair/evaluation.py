"""Whether a run of a repaired copy shows that the repair was right."""

from __future__ import annotations

import os
from enum import Enum

from shapefix.diagnostics import Diagnostic
from shapefix.runtime.repair.patched_sources import Step
from shapefix.runtime.repair.trials import Trial


class Verdict(Enum):
    """What a repair has led to; the value says it to a person."""

    PASSED = "it is gone, and the script trains"
    FARTHER = "it is gone, and the script comes farther"
    OTHER = "it is gone, and the next failure stands right behind it"
    SAME = "it is still there"
    EARLIER = "another failure came before it"
    WORSE = "the script does not train with it"

    @property
    def kept(self) -> bool:
        """Whether to go on with it."""
        return self in (Verdict.PASSED, Verdict.FARTHER, Verdict.OTHER)


def passed(trial: Trial, first: Trial) -> bool:
    """Whether a run has shown that a copy trains; first is the run of the script as it is.

    One that evaluates only has done all there is to do, where the script as it is did nothing else.
    """
    if not trial.whole or trial.blocking:
        return False
    return trial.run.trained or trial.with_gradient or not first.with_gradient


def judged(before: Trial, failing: Diagnostic, after: Trial, step: Step, first: Trial) -> Verdict:
    """What the run of a repaired copy says of a repair that was made for a finding of the run before it.

    step is what the repair did to the texts, first the run of the script as it is.
    """
    if still(failing, after, step):
        return Verdict.SAME
    known = before.found.diagnostics
    new = [each for each in after.found.diagnostics if not any(_same(old, each, step) for old in known)]
    reach = before.reach(failing)
    if any(after.reach(each) < reach for each in new):
        return Verdict.EARLIER
    if passed(after, first):
        return Verdict.PASSED
    if not after.found.diagnostics:  # it ended in a way that says nothing
        return Verdict.WORSE
    nearest = min((after.reach(each) for each in new), default=None)
    return Verdict.FARTHER if nearest is None or nearest > reach else Verdict.OTHER


def still(failing: Diagnostic, after: Trial, step: Step) -> bool:
    """Whether a finding of the run before a repair is one of the run after it."""
    return any(_same(failing, each, step) for each in after.found.diagnostics)


def _same(old: Diagnostic, new: Diagnostic, step: Step) -> bool:
    return (
        (old.code, old.name, old.message) == (new.code, new.name, new.message)
        and os.path.realpath(old.span.path) == os.path.realpath(new.span.path)
        and new.span.row in step.rows(old.span)
    )
