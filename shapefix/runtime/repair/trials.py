"""Runs of the script and its repaired copies."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from shapefix.diagnostics import Diagnostic, Severity
from shapefix.runtime.findings import nan_blame
from shapefix.runtime.findings.collect import ProbeFindings, collect_findings, exception_diagnostic
from shapefix.runtime.findings.nan_blame import with_nan_origins
from shapefix.runtime.observations import RaisedException
from shapefix.runtime.protocol import ScriptLine, SourceLine
from shapefix.runtime.ranks import rank_findings, without_ranks
from shapefix.runtime.repair.patched_sources import PatchedSources
from shapefix.runtime.run import ProbeRun, probe_script
from shapefix.sources.text import is_notebook

_MILESTONES = ("optimizer_step", "backward", "module_exit", "batch", "loader")


@dataclass(frozen=True)
class ProbeCommand:
    """A command line of the probe; timeout is in seconds, options are further options of the agent."""

    python: str
    script: str
    arguments: Sequence[str]
    steps: int
    timeout: float
    options: Sequence[str] = ()
    processes: int = 1


@dataclass(frozen=True)
class RepairTrial:
    """One run of a copy."""

    sources: PatchedSources
    run: ProbeRun
    found: ProbeFindings

    @property
    def is_whole(self) -> bool:
        """Whether the script got to the probe's stopping point, or to its own end after a model."""
        return self.run.complete or (self.found.early_stop_artifact is not None and self.run.trained)

    @property
    def blocking(self) -> tuple[Diagnostic, ...]:
        """The failures preventing training; for a copy proved to train, unswallowed ones."""
        trains = self.is_whole and self.run.trained
        failed = (each for each in self.found.diagnostics if self.failure(each) is not None)
        return tuple(each for each in failed if not trains or each.severity is Severity.ERROR)

    @property
    def with_gradient(self) -> bool:
        """Whether a model returned with gradients enabled."""
        return any(each.grad_enabled and each.out is not None for each in self.run.observed.modules)

    def failure(self, found: Diagnostic) -> RaisedException | None:
        """The exception of a finding of this run, if there is one."""
        return self._failures.get(replace(found, fixes=(), message=without_ranks(found.message)))

    def reach(self, found: Diagnostic) -> tuple[int, ...]:
        """The progress of the run at a finding: steps, backwards, returned calls, batches, loaders.

        For a finding without an exception, the progress at the end of the run.
        """
        failure = self.failure(found)
        counts = dict.fromkeys(_MILESTONES, 0)
        for line in self.run.observed.lines:
            if failure is not None and line["kind"] == "exception" and line["id"] == failure.id:
                break
            if line["kind"] in counts:
                counts[line["kind"]] += 1
        return tuple(counts.values())

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The executed files of the user's."""
        files = [line["file"] for line in self.run.observed.of(SourceLine)]
        ran = self.run.observed.first(ScriptLine)
        if ran is not None and is_notebook(ran["file"]):
            files.append(ran["file"])
        return tuple(dict.fromkeys(files))

    @cached_property
    def _failures(self) -> Mapping[Diagnostic, RaisedException]:
        known: dict[Diagnostic, RaisedException] = {}
        for observed in self.run.ranks or (self.run.observed,):
            for failure in observed.exceptions:
                found = exception_diagnostic(failure, observed)
                if found is not None:
                    known.setdefault(found, failure)
        return known


class RunLimitReached(Exception):
    """The limit of runs is reached."""


class TrialRunner:
    """Runs copies of one script, up to a number of runs, and each copy once."""

    def __init__(
        self, command: ProbeCommand, most: int, progress: Callable[[str], None] = lambda text: None
    ) -> None:
        self._command = command
        self._progress = progress
        self._known: dict[tuple[tuple[str, str], ...], RepairTrial] = {}
        self.most = most

    @property
    def runs(self) -> int:
        """The number of runs so far."""
        return len(self._known)

    @property
    def seconds(self) -> float:
        """The time of all runs together."""
        return sum(trial.run.process.seconds for trial in self._known.values())

    def run(self, sources: PatchedSources, what: str) -> RepairTrial:
        """Run a copy; `what` describes it in the progress report.

        Raises RunLimitReached, OSError if the interpreter cannot be started, and Unreadable if the copy
        cannot be written.
        """
        known = self._known.get(sources.key)
        if known is not None:
            return known
        if self.runs >= self.most:
            raise RunLimitReached
        self._progress(what)
        command = self._command
        with tempfile.TemporaryDirectory(prefix="shapefix-repair-", ignore_cleanup_errors=True) as folder:
            overlay = sources.write_overlay(Path(folder))
            options = [*command.options, *(() if overlay is None else ("--overlay", str(overlay)))]

            def run_script(*more: str) -> ProbeRun:
                return probe_script(
                    command.python, command.script, command.arguments, command.steps, command.timeout,
                    [*options, *more], command.processes,
                )  # fmt: skip

            run = run_script()
            found = (
                rank_findings(run, sources.read)
                if run.ranks
                else collect_findings(run.observed, sources.read)
            )
            found = with_nan_origins(found, lambda: run_script(nan_blame.OPTION).observed)
        trial = RepairTrial(sources, run, found)
        self._known[sources.key] = trial
        return trial
