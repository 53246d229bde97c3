"""Runs of the script, as it is or as a copy would have it, and what each has shown."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from shapefix.diagnostics import Diagnostic, Severity
from shapefix.runtime.findings.collect import Found, diagnostic, findings
from shapefix.runtime.findings.silent import Rules
from shapefix.runtime.observations import Failure
from shapefix.runtime.repair.patched_sources import Draft
from shapefix.runtime.report.text_report import Run
from shapefix.runtime.run import probe

_MILESTONES = ("step", "backward", "leave", "batch", "loader")


@dataclass(frozen=True)
class Command:
    """What is run: interpreter, script, its arguments, training steps, seconds, the agent's own options."""

    python: str
    script: str
    arguments: Sequence[str]
    steps: int
    timeout: float
    options: Sequence[str] = ()


@dataclass(frozen=True)
class Trial:
    """One run of a copy."""

    draft: Draft
    run: Run
    found: Found
    rules: Rules = field(repr=False)

    @property
    def whole(self) -> bool:
        """Whether the script came to where the probe ends it, or to its own end behind a model."""
        return self.run.complete or (self.found.aftermath is not None and self.run.trained)

    @property
    def blocking(self) -> tuple[Diagnostic, ...]:
        """The failures that keep it from training, or will: where it trains, those that no loop swallows."""
        trains = self.whole and self.run.trained
        failed = (each for each in self.found.diagnostics if self.failure(each) is not None)
        return tuple(each for each in failed if not trains or each.severity is Severity.ERROR)

    @property
    def with_gradient(self) -> bool:
        """Whether a model returned something that could be trained."""
        return any(each.training and each.out is not None for each in self.run.observed.modules)

    def failure(self, found: Diagnostic) -> Failure | None:
        """The exception that a finding of this run tells of; None for what was found without one."""
        return self._failures.get(replace(found, fixes=()))

    def reach(self, found: Diagnostic) -> tuple[int, ...]:
        """How far the run had come at a finding: steps, backwards, calls that returned, batches, loaders.

        For what was found without an exception, how far the run came.
        """
        failure = self.failure(found)
        counts = dict.fromkeys(_MILESTONES, 0)
        for line in self.run.observed.lines:
            if failure is not None and line["kind"] == "failure" and line["id"] == failure.number:
                break
            if line["kind"] in counts:
                counts[line["kind"]] += 1
        return tuple(counts.values())

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The user's files that the run has executed."""
        return tuple(dict.fromkeys(line["file"] for line in self.run.observed.of("source")))

    @cached_property
    def _failures(self) -> Mapping[Diagnostic, Failure]:
        told: dict[Diagnostic, Failure] = {}
        for failure in self.run.observed.failures:
            found = diagnostic(failure, self.run.observed, self.rules)
            if found is not None:
                told.setdefault(found, failure)
        return told


class OutOfRuns(Exception):
    """No further run is to be made."""


class Runner:
    """Runs copies of one script, at most so many times, and none twice."""

    def __init__(
        self, command: Command, rules: Rules, most: int, told: Callable[[str], None] = lambda text: None
    ) -> None:
        self._command = command
        self._rules = rules
        self._told = told
        self._known: dict[tuple[tuple[str, str], ...], Trial] = {}
        self.most = most

    @property
    def runs(self) -> int:
        """How many runs were made."""
        return len(self._known)

    @property
    def seconds(self) -> float:
        """How long they took together."""
        return sum(trial.run.ended.seconds for trial in self._known.values())

    def run(self, draft: Draft, what: str) -> Trial:
        """Run a copy; what says which, for somebody who waits.

        Raises OutOfRuns, OSError where the interpreter cannot be started, and Unreadable where the copy
        cannot be written down.
        """
        known = self._known.get(draft.key)
        if known is not None:
            return known
        if self.runs >= self.most:
            raise OutOfRuns
        self._told(what)
        command = self._command
        with tempfile.TemporaryDirectory(prefix="shapefix-repair-", ignore_cleanup_errors=True) as folder:
            overlay = draft.laid_out(Path(folder))
            options = [*command.options, *(() if overlay is None else ("--overlay", str(overlay)))]
            run = probe(
                command.python, command.script, command.arguments, command.steps, command.timeout, options
            )
        trial = Trial(draft, run, findings(run.observed, self._rules, draft.read), self._rules)
        self._known[draft.key] = trial
        return trial
