"""Run, diagnose, repair a copy, run again: until the copy trains, or nothing more is known."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from shapefix.diagnostics import Diagnostic, Severity, Span
from shapefix.repair.edits import InvalidEdit
from shapefix.runtime.repair.candidates import Candidate, candidates, others, usable
from shapefix.runtime.repair.evaluation import Verdict, judged, passed, still
from shapefix.runtime.repair.patched_sources import Draft, Originals, Step
from shapefix.runtime.repair.static_findings import Reader
from shapefix.runtime.repair.trials import OutOfRuns, Runner, Trial
from shapefix.runtime.report.formatting import counted
from shapefix.sources.text import Unreadable


@dataclass(frozen=True)
class Kept:
    """A repair in the copy: made for a finding of a run, or, with failing None, for one of reading alone.

    place is that of its finding in the user's own file.
    """

    candidate: Candidate
    place: Span
    failing: Diagnostic | None
    verdict: Verdict


@dataclass(frozen=True)
class TakenBack:
    """A repair that was tried, and why it is not in the copy; place is as for Kept."""

    candidate: Candidate
    place: Span
    reason: str


@dataclass(frozen=True)
class State:
    """A copy that was run, and the repairs in it, in their order."""

    trial: Trial
    kept: tuple[Kept, ...] = ()


@dataclass
class Outcome:
    """What became of a script: its run as it is, the best copy, and what was tried in vain.

    bounded says that there was more to try than runs to make.
    """

    first: Trial
    best: State
    passed: bool = False
    taken_back: list[TakenBack] = field(default_factory=list)
    bounded: bool = False


def search(runner: Runner, reader: Reader) -> Outcome:
    """Run a script, and repair it as far as runs prove it. Raises what Runner.run and Reader.findings do."""
    first = runner.run(Draft(Originals(), {}), "as it is")
    outcome = Outcome(first, State(first))
    found = _Search(runner, reader, outcome)
    try:
        outcome.passed = found.crashes(State(first))
        if outcome.passed:
            found.silent()
    except OutOfRuns:
        outcome.bounded = True
    return outcome


class _Search:
    """One search; the outcome is always that of what was proved so far."""

    def __init__(self, runner: Runner, reader: Reader, outcome: Outcome) -> None:
        self._runner = runner
        self._reader = reader
        self._outcome = outcome
        self._seen: set[object] = set()

    def crashes(self, state: State) -> bool:
        """Repair what keeps a copy from training; whether that came to its end."""
        outcome = self._outcome
        self._seen.add(state.trial.draft.key)
        if passed(state.trial, outcome.first):
            outcome.best, outcome.passed = state, True
            return True
        if len(state.kept) >= len(outcome.best.kept):
            outcome.best = state
        if not state.trial.found.diagnostics:
            return False
        for failing, candidate in self._crash_candidates(state.trial):
            after = self._tried(state, candidate)
            if after is None:
                continue
            trial, step = after
            verdict = judged(state.trial, failing, trial, step, outcome.first)
            if not verdict.kept or trial.draft.key in self._seen:
                self._take_back(state, candidate, verdict.value)
                continue
            kept = Kept(candidate, _place(state, candidate), failing, verdict)
            if self.crashes(State(trial, (*state.kept, kept))):
                return True
            if verdict is Verdict.FARTHER:
                return False
            self._take_back(state, candidate, "it is gone, and nothing repairs the failure behind it")
        return False

    def _crash_candidates(self, trial: Trial) -> Iterator[tuple[Diagnostic, Candidate]]:
        """What to try on a copy that fails: for the first failure that the run met, then for the next."""
        read = self._reader.findings(trial.draft, trial.files)
        blocking = sorted(trial.blocking, key=trial.reach)
        for failing in blocking:
            for candidate in candidates(trial, failing, read):
                finding = candidate.finding
                if finding.code == failing.code or finding is failing or self._reader.wanted(finding):
                    yield failing, candidate
        for failing in blocking[:1]:
            rest = others(trial, failing, [each for each in read if self._reader.wanted(each)])
            if len(rest) < 2 or self._helps(trial, failing, rest):
                yield from ((failing, each) for each in rest)

    def _helps(self, trial: Trial, failing: Diagnostic, rest: list[Candidate]) -> bool:
        """Whether the failure is another one with many repairs at once: else none of them needs a run."""
        together = Candidate(tuple(repair for each in rest for repair in each.repairs))
        try:
            draft, step = self._with(trial.draft, together)
            after = self._runner.run(draft, f"with {counted(len(rest), 'other repair')}")
        except (InvalidEdit, Unreadable):
            return True
        return not still(failing, after, step)

    def silent(self) -> None:
        """Repair what did not keep the copy from training: all at once, or one by one where that fails."""
        draft, gathered = self._gathered(self._outcome.best)
        if not gathered:
            return
        best = self._outcome.best
        trial = self._runner.run(draft, f"with {counted(len(gathered), 'repair')} more")
        if self._as_good(trial):
            more = tuple(self._kept(each, candidate, trial) for each, candidate in gathered)
            self._outcome.best = State(trial, (*best.kept, *more))
        elif len(gathered) == 1:
            self._take_back(best, gathered[0][1], Verdict.WORSE.value)
        else:
            self._one_by_one()

    def _one_by_one(self) -> None:
        refused: set[str] = set()
        while True:
            best = self._outcome.best
            candidate = next(
                (each for each in self._silent_candidates(best.trial) if _key(each) not in refused), None
            )
            if candidate is None:
                return
            after = self._tried(best, candidate)
            if after is not None and self._as_good(after[0]):
                kept = self._kept(best.trial.draft, candidate, after[0])
                self._outcome.best = State(after[0], (*best.kept, kept))
                continue
            refused.add(_key(candidate))
            if after is not None:
                self._take_back(best, candidate, Verdict.WORSE.value)

    def _gathered(self, state: State) -> tuple[Draft, list[tuple[Draft, Candidate]]]:
        """The copy with one finding of reading after the other repaired, each with the copy before it."""
        made: list[tuple[Draft, Candidate]] = []
        draft, refused = state.trial.draft, set[str]()
        seen = {draft.key}
        while True:
            for candidate in self._silent_candidates(state.trial, draft):
                after = None if _key(candidate) in refused else self._settled(state, draft, candidate)
                if after is None or after.key in seen:
                    refused.add(_key(candidate))
                    continue
                made.append((draft, candidate))
                seen.add(after.key)
                draft = after
                break
            else:
                return draft, made

    def _settled(self, state: State, draft: Draft, candidate: Candidate) -> Draft | None:
        """A copy in which reading no longer finds what a candidate repairs; None where it still does."""
        finding = candidate.finding
        try:
            after, step = self._with(draft, candidate)
            left = self._reader.findings(after, state.trial.files)
        except (InvalidEdit, Unreadable):
            return None
        rows, column = step.rows(finding.span), finding.span.column
        still_there = (each for each in left if each.code == finding.code and each.span.row in rows)
        return None if any(each.span.column == column for each in still_there) else after

    def _silent_candidates(self, trial: Trial, draft: Draft | None = None) -> list[Candidate]:
        read = self._reader.findings(draft or trial.draft, trial.files)
        return [
            Candidate(((finding, usable(finding)[0]),))
            for finding in read
            if usable(finding) and finding.severity is not Severity.INFO and self._reader.wanted(finding)
        ]

    def _as_good(self, trial: Trial) -> bool:
        """Whether a run is no worse than the best one: it trains where that did, and has no new finding."""
        best = self._outcome.best.trial
        known = {(each.code, each.name) for each in best.found.diagnostics}
        new = [each for each in trial.found.diagnostics if (each.code, each.name) not in known]
        return passed(trial, self._outcome.first) and not new and trial.run.trained >= best.run.trained

    def _kept(self, draft: Draft, candidate: Candidate, after: Trial) -> Kept:
        """A repair in a copy that trained before: for a finding of the run, where that is gone now."""
        code = candidate.finding.code
        gone = [each for each in self._outcome.best.trial.found.diagnostics if each.code == code]
        left = any(each.code == code for each in after.found.diagnostics)
        place = draft.origin(candidate.finding.span)
        return Kept(candidate, place, gone[0] if gone and not left else None, Verdict.PASSED)

    def _tried(self, state: State, candidate: Candidate) -> tuple[Trial, Step] | None:
        """The run of a copy with one repair more; None where it cannot be made."""
        try:
            draft, step = self._with(state.trial.draft, candidate)
            if draft.key == state.trial.draft.key:
                return None
            finding = candidate.finding
            trial = self._runner.run(draft, f"with a repair of {finding.code} at row {finding.span.row}")
        except (InvalidEdit, Unreadable) as reason:
            self._take_back(state, candidate, str(reason))
            return None
        return trial, step

    def _with(self, draft: Draft, candidate: Candidate) -> tuple[Draft, Step]:
        """A copy with a candidate in it. Raises Unfit, and Unreadable."""
        for path in sorted({edit.span.path for fix in candidate.fixes for edit in fix.edits}):
            if not self._reader.owns(os.path.realpath(path)):
                raise InvalidEdit(f"it would change {path}, which is no file of this project")
        return draft.repaired(candidate.fixes)

    def _take_back(self, state: State, candidate: Candidate, reason: str) -> None:
        taken = TakenBack(candidate, _place(state, candidate), reason)
        if all((each.candidate, each.place) != (candidate, taken.place) for each in self._outcome.taken_back):
            self._outcome.taken_back.append(taken)


def _place(state: State, candidate: Candidate) -> Span:
    return state.trial.draft.origin(candidate.finding.span)


def _key(candidate: Candidate) -> str:
    """What tells a finding of reading from others, also where its row has moved."""
    finding = candidate.finding
    return f"{finding.span.path}:{finding.code}:{finding.message}:{finding.span.column}"
