"""Repair files one by one, each until it has nothing left to repair."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from shapefix.diagnostics import Diagnostic, Failure, Fix, path_of
from shapefix.engine.batch import BatchRunner
from shapefix.engine.merge import FindingsByFile
from shapefix.engine.tasks import FileChecker, FileResult
from shapefix.light_dataclasses import dataclass
from shapefix.repair.fixpoint import repair
from shapefix.repair.writes import LeftAlone
from shapefix.sources.suppressions import with_suppressions
from shapefix.sources.text import SourceText, Unreadable, is_notebook, reason

if TYPE_CHECKING:
    from shapefix.sources.notebook_text import NotebookText


@dataclass(frozen=True)
class FileRepair:
    """The repair of one file: findings applied in the new text, and rejected ones with the reasons."""

    old: SourceText
    new: SourceText
    applied: tuple[Diagnostic, ...]
    rejected: tuple[tuple[Diagnostic, str], ...]

    @property
    def changes(self) -> tuple[tuple[str, str, str], ...]:
        """The repaired texts, each with its path, old and new; a notebook has one for each repaired cell."""
        if self.old == self.new:
            return ()
        if not is_notebook(self.old.path):
            return ((self.old.path, self.old.text, self.new.text),)
        old, new = cast("NotebookText", self.old), cast("NotebookText", self.new)
        before = {cell.number: cell.text for cell in old.cells}
        return tuple(
            (path_of(old.path, cell.number), before[cell.number], cell.text)
            for cell in new.cells
            if before[cell.number] != cell.text
        )

    @property
    def is_stale(self) -> bool:
        """Whether earlier findings are outdated: the file is repaired, or was changed by another program."""
        return self.old != self.new or not (self.applied or self.rejected)


def repair_files(
    runner: BatchRunner,
    findings: FindingsByFile,
    given: Collection[str],
    write: Callable[[str, bytes, bytes], None] | None,
) -> Iterator[FileRepair | Failure]:
    """Repair the given files with something to repair, and yield each repair.

    write(path, new, expected) replaces the content of a file if it is still the expected one; it may raise
    OSError and LeftAlone. Without write, new texts stay in the overlay, so that each file is repaired as
    if the files before it had been written.
    """
    repairable: set[str] = set()
    for finding in findings.kept():
        if finding.fix is not None and finding.span.path in given:
            if runner.settings.fixes(finding.span.path, finding.fix, finding.code):
                repairable.add(finding.span.path)
    for path in sorted(repairable):
        yield repair_file(runner, findings, path, write)


def repair_file(
    runner: BatchRunner,
    findings: FindingsByFile,
    path: str,
    write: Callable[[str, bytes, bytes], None] | None,
    only: Callable[[Diagnostic], bool] | None = None,
) -> FileRepair | Failure:
    """Repair one file; write is as for repair_files.

    Findings chosen by only are repaired, and no others; the settings do not count.
    """
    before = runner.overlay.get(path)
    outcome = _repair_file(runner, findings, path, write, only)
    changed = isinstance(outcome, FileRepair) and outcome.is_stale
    if changed and write is not None:
        runner.forget(path)
    if not changed or write is not None:
        runner.overlay.set(path, before)
    return outcome


def _repair_file(
    runner: BatchRunner,
    findings: FindingsByFile,
    path: str,
    write: Callable[[str, bytes, bytes], None] | None,
    only: Callable[[Diagnostic], bool] | None,
) -> FileRepair | Failure:
    """Repair one file, and leave its new text in the overlay."""

    def allowed(fix: Fix, finding: Diagnostic) -> bool:
        return runner.settings.fixes(path, fix, finding.code) if only is None else only(finding)

    try:
        data = runner.overlay.data(path)
        old = runner.overlay.source(path)
        file = _RepairedFile(runner, findings, old, with_hidden=only is not None)
        result = repair(old.text, file.findings, allowed)
        repaired = FileRepair(old, _with_text(old, result.text), result.applied, result.rejected)
        new = repaired.new.encode()
        if write is not None and new != data:
            write(path, new, data)
        runner.overlay.set(path, new)
    except (AnalysisFailed, Unreadable, LeftAlone) as error:
        return Failure(path, f"cannot be repaired: {error}")
    except OSError as error:
        return Failure(path, f"cannot be written: {reason(error)}")
    return repaired


def suppress_findings(
    runner: BatchRunner,
    findings: Sequence[Diagnostic],
    path: str,
    reason_given: str,
    write: Callable[[str, bytes, bytes], None],
) -> FileRepair | Failure:
    """Write `# noqa` comments for the findings in one file; write is as for repair_files."""
    try:
        data = runner.overlay.data(path)
        old = runner.overlay.source(path)
        text, done, left = with_suppressions(old, findings, reason_given)
        new = _with_text(old, text)
        if new.encode() != data:
            write(path, new.encode(), data)
    except (Unreadable, LeftAlone) as error:
        return Failure(path, f"cannot be changed: {error}")
    except OSError as error:
        return Failure(path, f"cannot be written: {reason(error)}")
    return FileRepair(old, new, done, tuple((each, "no comment can be in its line") for each in left))


class AnalysisFailed(Exception):
    """The text of a file under repair could not be analyzed."""


class _RepairedFile:
    """A file under repair, and the checked files with findings in it."""

    def __init__(
        self, runner: BatchRunner, findings: FindingsByFile, source: SourceText, *, with_hidden: bool
    ) -> None:
        """with_hidden also returns the findings in code without a use."""
        self._with_hidden = with_hidden
        self._runner = runner
        self._findings = findings
        self._source = source
        self._reaching = findings.reaching(source.path)
        self._checker = FileChecker(runner.overlay.source)

    def findings(self, text: str) -> list[Diagnostic]:
        """Return the findings in the file for another text. Raises AnalysisFailed and Unreadable."""
        path = self._source.path
        data = _with_text(self._source, text).encode()
        self._runner.overlay.set(path, data)
        # The others import its new text. One without torch is never analyzed for itself.
        self._checker.forget(path)
        found: list[Diagnostic] = []
        for checked in (path, *self._reaching):
            result = self._check(checked)
            if checked == path and result.failures:
                raise AnalysisFailed(result.failures[0].message)
            found += (each for each in result.diagnostics if each.span.path == path)
        if self._with_hidden:
            return self._findings.selected(path, self._findings.best(found))
        return self._findings.wanted(path, self._findings.best(found))

    def _check(self, path: str) -> FileResult:
        return self._checker.check(self._runner.task(path, self._runner.overlay.data(path)))


def _with_text(source: SourceText, text: str) -> SourceText:
    return replace(source, text=text)
