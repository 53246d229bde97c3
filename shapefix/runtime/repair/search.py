"""Run, diagnose, repair a copy and run it again, until it trains or no repair is left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from shapefix.diagnostics import Diagnostic, Severity, Span
from shapefix.repair.edits import InvalidEdit
from shapefix.runtime.repair.candidates import (
    RepairCandidate,
    candidates,
    fallback_candidates,
    usable,
)
from shapefix.runtime.repair.evaluation import (
    RepairOutcome,
    evaluate_repair,
    persists,
    trains,
)
from shapefix.runtime.repair.patched_sources import (
    AppliedRepair,
    OriginalSources,
    PatchedSources,
)
from shapefix.runtime.repair.static_findings import StaticFindings
from shapefix.runtime.repair.trials import RepairTrial, RunLimitReached, TrialRunner
from shapefix.runtime.report.formatting import counted
from shapefix.sources.text import Unreadable


@dataclass(frozen=True)
class Accepted:
    """A repair in the copy, for a finding of a run, or for a static finding if failing is None.

    place is that of its finding in the user's file.
    """

    candidate: RepairCandidate
    place: Span
    failing: Diagnostic | None
    outcome: RepairOutcome


@dataclass(frozen=True)
class Rejected:
    """A repair missing from the copy, and the reason; place is as for Accepted."""

    candidate: RepairCandidate
    place: Span
    reason: str


@dataclass(frozen=True)
class RepairState:
    """A copy after its run, and the repairs in it, in order."""

    trial: RepairTrial
    accepted: tuple[Accepted, ...] = ()


@dataclass
class SearchResult:
    """The run of the unchanged script, the best copy, and the rejected repairs.

    limited says that the limit of runs was reached with repairs left to try.
    """

    first: RepairTrial
    best: RepairState
    trains: bool = False
    rejected: list[Rejected] = field(default_factory=list)
    limited: bool = False


def search(runner: TrialRunner, reader: StaticFindings) -> SearchResult:
    """Search for proven repairs of a script. Raises the exceptions of TrialRunner.run and findings()."""
    first = runner.run(PatchedSources(OriginalSources(), {}), "unchanged")
    result = SearchResult(first, RepairState(first))
    found = _Search(runner, reader, result)
    try:
        result.trains = found.crashes(RepairState(first))
        if result.trains:
            found.silent()
    except RunLimitReached:
        result.limited = True
    return result


class _Search:
    """One search; its result always covers the repairs proved so far."""

    def __init__(self, runner: TrialRunner, reader: StaticFindings, result: SearchResult) -> None:
        self._runner = runner
        self._reader = reader
        self._result = result
        self._seen: set[object] = set()

    def crashes(self, state: RepairState) -> bool:
        """Repair the failures of a copy; returns whether the copy trains in the end."""
        result = self._result
        self._seen.add(state.trial.sources.key)
        if trains(state.trial, result.first):
            result.best, result.trains = state, True
            return True
        if len(state.accepted) >= len(result.best.accepted):
            result.best = state
        if not state.trial.found.diagnostics:
            return False
        for failing, candidate in self._crash_candidates(state.trial):
            after = self._tried(state, candidate)
            if after is None:
                continue
            trial, step = after
            outcome = evaluate_repair(state.trial, failing, trial, step, result.first)
            if not outcome.is_accepted or trial.sources.key in self._seen:
                self._reject(state, candidate, outcome.value)
                continue
            accepted = Accepted(candidate, _place(state, candidate), failing, outcome)
            if self.crashes(RepairState(trial, (*state.accepted, accepted))):
                return True
            if outcome is RepairOutcome.PROGRESS:
                return False
            self._reject(state, candidate, "the finding is gone, but nothing repairs the failure after it")
        return False

    def _crash_candidates(self, trial: RepairTrial) -> Iterator[tuple[Diagnostic, RepairCandidate]]:
        """The repairs to try on a failing copy: those for its first failure first."""
        read = self._reader.findings(trial.sources, trial.files)
        blocking = sorted(trial.blocking, key=trial.reach)
        for failing in blocking:
            for candidate in candidates(trial, failing, read):
                finding = candidate.finding
                if finding.code == failing.code or finding is failing or self._reader.is_reported(finding):
                    yield failing, candidate
        for failing in blocking[:1]:
            rest = fallback_candidates(
                trial, failing, [each for each in read if self._reader.is_reported(each)]
            )
            if len(rest) < 2 or self._helps(trial, failing, rest):
                yield from ((failing, each) for each in rest)

    def _helps(self, trial: RepairTrial, failing: Diagnostic, rest: list[RepairCandidate]) -> bool:
        """Whether the failure changes with all these repairs together: otherwise none of them needs a run."""
        together = RepairCandidate(tuple(repair for each in rest for repair in each.repairs))
        try:
            sources, step = self._with(trial.sources, together)
            after = self._runner.run(sources, f"with {counted(len(rest), 'other repair')}")
        except (InvalidEdit, Unreadable):
            return True
        return not persists(failing, after, step)

    def silent(self) -> None:
        """Repair static findings in a copy proved to train: all at once, or one by one if that fails."""
        sources, gathered = self._gathered(self._result.best)
        if not gathered:
            return
        best = self._result.best
        trial = self._runner.run(sources, f"with {counted(len(gathered), 'repair')} more")
        if self._no_regression(trial):
            more = tuple(self._accepted(each, candidate, trial) for each, candidate in gathered)
            self._result.best = RepairState(trial, (*best.accepted, *more))
        elif len(gathered) == 1:
            self._reject(best, gathered[0][1], RepairOutcome.BREAKS_TRAINING.value)
        else:
            self._one_by_one()

    def _one_by_one(self) -> None:
        failed: set[str] = set()
        while True:
            best = self._result.best
            candidate = next(
                (each for each in self._silent_candidates(best.trial) if _key(each) not in failed), None
            )
            if candidate is None:
                return
            after = self._tried(best, candidate)
            if after is not None and self._no_regression(after[0]):
                accepted = self._accepted(best.trial.sources, candidate, after[0])
                self._result.best = RepairState(after[0], (*best.accepted, accepted))
                continue
            failed.add(_key(candidate))
            if after is not None:
                self._reject(best, candidate, RepairOutcome.BREAKS_TRAINING.value)

    def _gathered(
        self, state: RepairState
    ) -> tuple[PatchedSources, list[tuple[PatchedSources, RepairCandidate]]]:
        """Repair one static finding after the other; returns the copy, and the repairs with their copies."""
        made: list[tuple[PatchedSources, RepairCandidate]] = []
        sources, failed = state.trial.sources, set[str]()
        seen = {sources.key}
        while True:
            for candidate in self._silent_candidates(state.trial, sources):
                after = (
                    None if _key(candidate) in failed else self._without_finding(state, sources, candidate)
                )
                if after is None or after.key in seen:
                    failed.add(_key(candidate))
                    continue
                made.append((sources, candidate))
                seen.add(after.key)
                sources = after
                break
            else:
                return sources, made

    def _without_finding(
        self, state: RepairState, sources: PatchedSources, candidate: RepairCandidate
    ) -> PatchedSources | None:
        """Apply a candidate; None if static analysis still has its finding."""
        finding = candidate.finding
        try:
            after, step = self._with(sources, candidate)
            left = self._reader.findings(after, state.trial.files)
        except (InvalidEdit, Unreadable):
            return None
        rows, column = step.rows(finding.span), finding.span.column
        still_there = (each for each in left if each.code == finding.code and each.span.row in rows)
        return None if any(each.span.column == column for each in still_there) else after

    def _silent_candidates(
        self, trial: RepairTrial, sources: PatchedSources | None = None
    ) -> list[RepairCandidate]:
        read = self._reader.findings(sources or trial.sources, trial.files)
        is_unchanged = sources is None or sources.key == trial.sources.key
        of_run = [
            finding
            for finding in (trial.found.diagnostics if is_unchanged else ())
            if usable(finding) and trial.failure(finding) is None
        ]
        of_check = [
            finding
            for finding in read
            if usable(finding) and finding.severity is not Severity.INFO and self._reader.is_reported(finding)
        ]
        places = {_code_and_row(each) for each in of_run}
        # At one place, the repair that `check` offers comes first: it knows the way to the place.
        same = [each for each in of_check if _code_and_row(each) in places]
        others = [each for each in of_check if _code_and_row(each) not in places]
        return [RepairCandidate(((each, usable(each)[0]),)) for each in (*same, *of_run, *others)]

    def _no_regression(self, trial: RepairTrial) -> bool:
        """Whether a run is as good as the best one: it trains if the best one does, without a new finding."""
        best = self._result.best.trial
        known = {(each.code, each.name) for each in best.found.diagnostics}
        new = [each for each in trial.found.diagnostics if (each.code, each.name) not in known]
        return trains(trial, self._result.first) and not new and trial.run.trained >= best.run.trained

    def _accepted(self, sources: PatchedSources, candidate: RepairCandidate, after: RepairTrial) -> Accepted:
        """A repair of a copy proved to train, for a finding of the run if it is gone now."""
        code = candidate.finding.code
        gone = [each for each in self._result.best.trial.found.diagnostics if each.code == code]
        left = any(each.code == code for each in after.found.diagnostics)
        place = sources.origin(candidate.finding.span)
        return Accepted(candidate, place, gone[0] if gone and not left else None, RepairOutcome.PASSED)

    def _tried(
        self, state: RepairState, candidate: RepairCandidate
    ) -> tuple[RepairTrial, AppliedRepair] | None:
        """Run a copy with one more repair; None if the repair cannot be applied."""
        try:
            sources, step = self._with(state.trial.sources, candidate)
            if sources.key == state.trial.sources.key:
                return None
            finding = candidate.finding
            trial = self._runner.run(sources, f"with a repair of {finding.code} at line {finding.span.row}")
        except (InvalidEdit, Unreadable) as reason:
            self._reject(state, candidate, str(reason))
            return None
        return trial, step

    def _with(
        self, sources: PatchedSources, candidate: RepairCandidate
    ) -> tuple[PatchedSources, AppliedRepair]:
        """Apply a candidate to a copy. Raises Unfit and Unreadable."""
        for path in sorted({edit.span.path for fix in candidate.fixes for edit in fix.edits}):
            if not self._reader.owns(os.path.realpath(path)):
                raise InvalidEdit(f"it would change {path}, which is not in this project")
        return sources.with_fixes(candidate.fixes)

    def _reject(self, state: RepairState, candidate: RepairCandidate, reason: str) -> None:
        rejected = Rejected(candidate, _place(state, candidate), reason)
        if all((each.candidate, each.place) != (candidate, rejected.place) for each in self._result.rejected):
            self._result.rejected.append(rejected)


def _place(state: RepairState, candidate: RepairCandidate) -> Span:
    return state.trial.sources.origin(candidate.finding.span)


def _code_and_row(finding: Diagnostic) -> tuple[str, str, int]:
    return finding.code, os.path.realpath(finding.span.path), finding.span.row


def _key(candidate: RepairCandidate) -> str:
    """A row-independent key for a static finding."""
    finding = candidate.finding
    return f"{finding.span.path}:{finding.code}:{finding.message}:{finding.span.column}"
