"""The main job: the paths of the command line in, everything that is known about them out."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH100, PTH109, PTH112, PTH118

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shapefix.diagnostics import Diagnostic, Failure
from shapefix.engine.batch import Run
from shapefix.engine.merge import Findings, Written, with_imports
from shapefix.engine.repairs import FileRepair, repaired
from shapefix.engine.settings import Settings
from shapefix.engine.source_overlay import Texts, real
from shapefix.engine.tasks import Answer
from shapefix.sources.discovery import Discovered, discover
from shapefix.sources.text import Unreadable

Progress = Callable[[int, int], None]
"""Is told how many files are done, and of how many."""


@dataclass(frozen=True)
class StandardInput:
    """What came in on standard input, and the name to treat it by; which need not exist."""

    data: bytes
    filename: str | None = None


@dataclass
class Tally:
    """How the answers were come by: bounded maps files to the number of calls that were not followed."""

    files: int = 0
    cached: int = 0
    irrelevant: int = 0
    bounded: dict[str, int] = field(default_factory=dict)

    def add(self, answer: Answer) -> None:
        """Count one answer."""
        self.files += 1
        self.cached += answer.cached
        self.irrelevant += not answer.relevant
        if answer.bounded:
            self.bounded[answer.path] = answer.bounded


class Examination:
    """Files with what their runs found; the paths in findings are absolute, those it returns the user's.

    Making one does all the work. laid_over has what files, by their absolute paths, are taken to hold instead
    of what is on disk. Raises ConfigurationError.
    """

    def __init__(
        self,
        paths: Sequence[str],
        settings: Settings,
        standard_input: StandardInput | None = None,
        progress: Progress | None = None,
        laid_over: Mapping[str, bytes] | None = None,
    ) -> None:
        self._settings = settings
        self._texts = Texts()
        self.tally = Tally()
        self._discovered = located(paths, settings, standard_input)
        self._names = {real(path): path for path in self._discovered.files}
        if standard_input is not None:
            (path,) = self._names
            self._names[path] = standard_input.filename or "-"
            self._texts.lay_over(path, standard_input.data)
        for path, data in (laid_over or {}).items():
            self._texts.lay_over(path, data)
        self._written = Written(self._names)
        folders = [os.path.realpath(path) for path in paths if os.path.isdir(path)]
        self._run = Run(settings, self._texts, folders)
        self._findings = Findings(settings, self._texts, self._names.keys())
        self._imports: dict[str, frozenset[str]] = {}
        self._failed_repairs: list[Failure] = []
        self._ask(list(self._names), progress)

    def _ask(self, paths: Sequence[str], progress: Progress | None) -> None:
        done = 0

        def take(answer: Answer) -> None:
            nonlocal done
            done += 1
            self.tally.add(answer)
            self._findings.add(answer)
            self._imports[answer.path] = answer.found & self._names.keys()
            if progress is not None:
                progress(done, len(paths))

        self._run.ask(paths, take)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that were given or found, as the user would write them."""
        return self._discovered.files

    @property
    def links_outside(self) -> tuple[str, ...]:
        """Symbolic links in the given folders to files in none of them, which are not checked."""
        return self._discovered.outside

    @property
    def read(self) -> int:
        """How many of the files could be read and parsed."""
        return len(self._names.keys() - {failure.path for failure in self._findings.failures})

    @property
    def notebooks(self) -> tuple[str, ...]:
        """The notebooks in the given folders, which are not checked."""
        return self._discovered.notebooks

    def findings(self) -> tuple[Diagnostic, ...]:
        """What is reported, by path and place; fixes hold their imports as edits."""
        return tuple(
            self._written.finding(with_imports(finding, self._texts.text(finding.span.path)))
            for finding in self._findings.kept()
        )

    def failures(self) -> tuple[Failure, ...]:
        """What could not be answered."""
        return (
            *self._discovered.failures,
            *(self._written.failure(each) for each in (*self._findings.failures, *self._failed_repairs)),
        )

    def source(self, path: str) -> str | None:
        """The text of a file as it was analysed; path is one that a finding names."""
        return self._texts.text(self._written.real(path))

    def data(self, path: str) -> bytes | None:
        """The bytes of a file as it was analysed, None where it cannot be had."""
        try:
            return self._texts.data(self._written.real(path))
        except Unreadable:
            return None

    def standard_output(self) -> bytes:
        """What standard input has become."""
        (path,) = self._names
        return self._texts.data(path)

    def outside(self) -> tuple[str, ...]:
        """The files that were not given and in which something is found that could be repaired."""
        elsewhere = {
            finding.span.path
            for finding in self._findings.kept()
            if finding.span.path not in self._names
            and finding.fix is not None
            and self._settings.fixes(finding.span.path, finding.fix)
        }
        return tuple(sorted(elsewhere))

    def repair(self, write: Callable[[str, bytes, bytes], None] | None) -> Iterator[FileRepair]:
        """Repair the given files, and yield what became of each; findings and failures follow.

        write is as for repaired.
        """
        changed: set[str] = set()
        for outcome in repaired(self._run, self._findings, self._names.keys(), write):
            if isinstance(outcome, Failure):
                self._failed_repairs.append(outcome)
                continue
            if outcome.old != outcome.new:
                changed.add(outcome.old.path)
            yield self._named(outcome)
        if changed:
            stale = [
                path
                for path, found in self._imports.items()
                # What rests on a text that is not on disk must not get into the cache.
                if path in changed or (write is not None and found & changed)
            ]
            self._ask(stale, None)

    def _named(self, outcome: FileRepair) -> FileRepair:
        path = self._written.path(outcome.old.path)
        return FileRepair(
            replace(outcome.old, path=path),
            replace(outcome.new, path=path),
            tuple(self._written.finding(finding) for finding in outcome.applied),
            tuple((self._written.finding(finding), reason) for finding, reason in outcome.refused),
        )


def located(paths: Sequence[str], settings: Settings, standard_input: StandardInput | None) -> Discovered:
    """The files that the paths of a command line lead to; standard input stands for one of its own."""
    if standard_input is None:
        return discover(paths, settings.configurations, force_exclude=settings.options.force_exclude)
    name = standard_input.filename
    return Discovered((os.path.abspath(name) if name else os.path.join(os.getcwd(), "<stdin>"),), ())
