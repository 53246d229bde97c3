"""Order repairs by how likely they are to help: those of findings at the failing place first."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shapefix.diagnostics import Applicability, Diagnostic, Fix, Span
from shapefix.runtime.repair.trials import RepairTrial


@dataclass(frozen=True)
class RepairCandidate:
    """Fixes to be applied together, each with its finding."""

    repairs: tuple[tuple[Diagnostic, Fix], ...]

    @property
    def fixes(self) -> tuple[Fix, ...]:
        return tuple(fix for _, fix in self.repairs)

    @property
    def finding(self) -> Diagnostic:
        return self.repairs[0][0]


def candidates(
    trial: RepairTrial, failing: Diagnostic, read: Sequence[Diagnostic]
) -> Iterator[RepairCandidate]:
    """Repairs for a finding of a run, the most likely first; read are the static findings.

    The order: static findings of the same rule at a place of the failure, which confirms them; the fix from
    measured values; the same rule elsewhere; other rules on the way to the failure.
    """
    same = [each for each in read if each.code == failing.code]
    here = [each for each in same if places(trial, failing) & _rows(each)]
    yield from _singly(here)
    yield from _singly([failing])
    yield from _together(here)
    yield from _singly(each for each in same if each not in here)
    yield from _singly(each for each in read if each not in same and _is_near(trial, failing, each))


def fallback_candidates(
    trial: RepairTrial, failing: Diagnostic, read: Sequence[Diagnostic]
) -> list[RepairCandidate]:
    """Less likely repairs: the other static findings, each with its preferred fix."""
    return [
        RepairCandidate(((each, usable(each)[0]),))
        for each in read
        if each.code != failing.code and usable(each) and not _is_near(trial, failing, each)
    ]


def _is_near(trial: RepairTrial, failing: Diagnostic, found: Diagnostic) -> bool:
    """Whether a static finding has a row in common with a failure, or is on its stack."""
    return bool(_rows(failing) & _rows(found) or places(trial, failing) & _rows(found, whole=False))


def places(trial: RepairTrial, found: Diagnostic) -> frozenset[tuple[str, int]]:
    """The rows of a finding of a run, its evidence, and its stack."""
    failure = trial.failure(found)
    return _rows(found) | _row_set(() if failure is None else failure.stack)


def usable(finding: Diagnostic) -> tuple[Fix, ...]:
    """The applicable fixes of a finding, the preferred one first."""
    return tuple(fix for fix in finding.fixes if fix.applicability is not Applicability.DISPLAY)


def _singly(findings: Iterable[Diagnostic]) -> Iterator[RepairCandidate]:
    for finding in findings:
        for fix in usable(finding):
            yield RepairCandidate(((finding, fix),))


def _together(findings: Sequence[Diagnostic]) -> Iterator[RepairCandidate]:
    """The findings of each row together: without columns, a failure cannot tell them apart."""
    for row in dict.fromkeys((each.span.path, each.span.row) for each in findings):
        here = [each for each in findings if (each.span.path, each.span.row) == row and usable(each)]
        if len(here) > 1:
            yield RepairCandidate(tuple((each, usable(each)[0]) for each in here))


def _rows(finding: Diagnostic, whole: bool = True) -> frozenset[tuple[str, int]]:
    """The row of a finding, and with whole also the rows of its evidence."""
    return _row_set((finding.span, *(step.span for step in finding.evidence if whole)))


def _row_set(spans: Iterable[Span]) -> frozenset[tuple[str, int]]:
    return frozenset((os.path.realpath(span.path), span.row) for span in spans)
