"""Repairs the files of a run, each until nothing is left that may be repaired in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from shapefix.diagnostics import Diagnostic, Failure
from shapefix.engine.batch import Run
from shapefix.engine.merge import Findings, unique
from shapefix.engine.tasks import Answer, Answerer
from shapefix.repair.fixpoint import repair
from shapefix.repair.writes import ChangedOnDisk
from shapefix.sources.text import SourceText, Unreadable, reason


@dataclass(frozen=True)
class FileRepair:
    """What became of one file: applied are the findings that are repaired in new, refused those that are not.

    What was refused comes with the reason.
    """

    old: SourceText
    new: SourceText
    applied: tuple[Diagnostic, ...]
    refused: tuple[tuple[Diagnostic, str], ...]


def repaired(
    run: Run, findings: Findings, given: Collection[str], write: Callable[[str, bytes, bytes], None] | None
) -> Iterator[FileRepair | Failure]:
    """Yield the repair of each of the given files that has something to repair, one after the other.

    write puts bytes into the file at a path, if it still holds those expected there; it may raise OSError and
    ChangedOnDisk. Without it, new texts stay laid over those of the run, so that each file is repaired as if
    those before it had been written.
    """
    repairable: set[str] = set()
    for finding in findings.kept():
        if finding.fix is not None and finding.span.path in given:
            if run.settings.fixes(finding.span.path, finding.fix):
                repairable.add(finding.span.path)
    for path in sorted(repairable):
        before = run.texts.laid_over(path)
        outcome = _repaired(run, findings, path, write)
        changed = isinstance(outcome, FileRepair) and outcome.new != outcome.old
        if changed and write is not None:
            run.forget(path)
        if not changed or write is not None:
            run.texts.lay_over(path, before)
        yield outcome


def _repaired(
    run: Run, findings: Findings, path: str, write: Callable[[str, bytes, bytes], None] | None
) -> FileRepair | Failure:
    """Repair one file; its new text, if there is one, is left laid over it."""
    try:
        data = run.texts.data(path)
        old = run.texts.source(path)
        file = _File(run, findings, old)
        result = repair(old.text, file.findings, lambda fix, _: run.settings.fixes(path, fix))
        done = FileRepair(old, _with_text(old, result.text), result.applied, result.refused)
        new = done.new.encode()
        if write is not None and new != data:
            write(path, new, data)
        run.texts.lay_over(path, new)
    except (Unanswered, Unreadable, ChangedOnDisk) as error:
        return Failure(path, f"cannot be repaired: {error}")
    except OSError as error:
        return Failure(path, f"cannot be written: {reason(error)}")
    return done


class Unanswered(Exception):
    """A text that is being repaired could not be analysed."""


class _File:
    """One file under repair, and the files whose runs find something in it."""

    def __init__(self, run: Run, findings: Findings, source: SourceText) -> None:
        self._run = run
        self._findings = findings
        self._source = source
        self._reaching = findings.reaching(source.path)
        self._answerer = Answerer(run.texts.source)

    def findings(self, text: str) -> list[Diagnostic]:
        """What the file has, were text its text. Raises Unanswered, and Unreadable."""
        path = self._source.path
        data = _with_text(self._source, text).encode()
        self._run.texts.lay_over(path, data)
        found: list[Diagnostic] = []
        # The file itself comes first: from then on it is its new text that the others import.
        for asked in (path, *self._reaching):
            answer = self._answer(asked)
            if asked == path and answer.failures:
                raise Unanswered(answer.failures[0].message)
            found += (each for each in answer.diagnostics if each.span.path == path)
        return self._findings.wanted(path, unique(found))

    def _answer(self, path: str) -> Answer:
        return self._answerer.answer(self._run.question(path, self._run.texts.data(path)))


def _with_text(source: SourceText, text: str) -> SourceText:
    return SourceText(source.path, text, source.encoding, source.bom)
