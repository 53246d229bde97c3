"""Which repairs are worth a run: those of findings at the place of the failure first."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shapefix.diagnostics import Applicability, Diagnostic, Fix, Span
from shapefix.runtime.repair.trials import Trial


@dataclass(frozen=True)
class Candidate:
    """Fixes to be made together, each with the finding that it belongs to."""

    repairs: tuple[tuple[Diagnostic, Fix], ...]

    @property
    def fixes(self) -> tuple[Fix, ...]:
        return tuple(fix for _, fix in self.repairs)

    @property
    def finding(self) -> Diagnostic:
        return self.repairs[0][0]


def candidates(trial: Trial, failing: Diagnostic, read: Sequence[Diagnostic]) -> Iterator[Candidate]:
    """What is likely to repair a finding of a run, the likeliest first; read are the findings of its texts.

    A finding of the same rule at one of the places of the failure is confirmed by it. What the run has
    measured comes next, then the same rule elsewhere, then other rules on the way to the failure.
    """
    same = [each for each in read if each.code == failing.code]
    here = [each for each in same if places(trial, failing) & _rows(each)]
    yield from _singly(here)
    yield from _singly([failing])
    yield from _together(here)
    yield from _singly(each for each in same if each not in here)
    yield from _singly(each for each in read if each not in same and _is_near(trial, failing, each))


def others(trial: Trial, failing: Diagnostic, read: Sequence[Diagnostic]) -> list[Candidate]:
    """What may repair it all the same: the other findings of reading, each with its preferred fix."""
    return [
        Candidate(((each, usable(each)[0]),))
        for each in read
        if each.code != failing.code and usable(each) and not _is_near(trial, failing, each)
    ]


def _is_near(trial: Trial, failing: Diagnostic, found: Diagnostic) -> bool:
    """Whether a finding of reading speaks of what the failure speaks of, or lies on its stack."""
    return bool(_rows(failing) & _rows(found) or places(trial, failing) & _rows(found, whole=False))


def places(trial: Trial, found: Diagnostic) -> frozenset[tuple[str, int]]:
    """The rows that a finding of a run speaks of, and those that were on the stack."""
    failure = trial.failure(found)
    return _rows(found) | _those(() if failure is None else failure.stack)


def usable(finding: Diagnostic) -> tuple[Fix, ...]:
    """The fixes of a finding that can be made, the one that is preferred first."""
    return tuple(fix for fix in finding.fixes if fix.applicability is not Applicability.DISPLAY)


def _singly(findings: Iterable[Diagnostic]) -> Iterator[Candidate]:
    for finding in findings:
        for fix in usable(finding):
            yield Candidate(((finding, fix),))


def _together(findings: Sequence[Diagnostic]) -> Iterator[Candidate]:
    """The findings of a row together: where Python knows no columns, they are one place."""
    for row in dict.fromkeys((each.span.path, each.span.row) for each in findings):
        here = [each for each in findings if (each.span.path, each.span.row) == row and usable(each)]
        if len(here) > 1:
            yield Candidate(tuple((each, usable(each)[0]) for each in here))


def _rows(finding: Diagnostic, whole: bool = True) -> frozenset[tuple[str, int]]:
    """The row of a finding, and with whole those of its evidence."""
    return _those((finding.span, *(step.span for step in finding.evidence if whole)))


def _those(spans: Iterable[Span]) -> frozenset[tuple[str, int]]:
    return frozenset((os.path.realpath(span.path), span.row) for span in spans)
