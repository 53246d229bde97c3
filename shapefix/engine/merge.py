"""What the answers of a run say together: each finding once, without those that nobody wants to see."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH100

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Failure, Fix, Span
from shapefix.engine.settings import Settings
from shapefix.engine.source_overlay import Texts
from shapefix.engine.tasks import Answer
from shapefix.sources.suppressions import suppressed
from shapefix.sources.text import Unreadable


class Findings:
    """Collects answers; paths are absolute.

    given are the files that the user asked about: runs of them may find something in other files.
    """

    def __init__(self, settings: Settings, texts: Texts, given: Collection[str]) -> None:
        self._settings = settings
        self._texts = texts
        self._given = given
        self._found_from: dict[str, tuple[Diagnostic, ...]] = {}
        self._failures: dict[str, tuple[Failure, ...]] = {}

    def add(self, answer: Answer) -> None:
        """Take an answer, in the place of an earlier one for the same file."""
        for known, new in ((self._found_from, answer.diagnostics), (self._failures, answer.failures)):
            known.pop(answer.path, None)
            if new:
                known[answer.path] = new  # type: ignore[assignment]

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What could not be answered, by path and place."""
        found = {failure for failures in self._failures.values() for failure in failures}
        return tuple(
            sorted(found, key=lambda each: (each.path, each.row or 0, each.column or 0, each.message))
        )

    def reaching(self, path: str) -> tuple[str, ...]:
        """The files whose runs found something in the file at path, without that file itself."""
        return tuple(
            asked
            for asked, found in self._found_from.items()
            if asked != path and any(each.span.path == path for each in found)
        )

    def kept(self) -> tuple[Diagnostic, ...]:
        """The findings to report, by path, row, column and code. Raises ConfigurationError."""
        by_path: dict[str, list[Diagnostic]] = {}
        for finding in unique(each for found in self._found_from.values() for each in found):
            by_path.setdefault(finding.span.path, []).append(finding)
        kept: list[Diagnostic] = []
        for path in sorted(by_path):
            kept += self.wanted(path, by_path[path])
        return tuple(kept)

    def wanted(self, path: str, findings: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Of findings in the one file at path, those that its comments and its configuration let through."""
        if path not in self._given and self._settings.excludes(path):
            return []
        reported = self._settings.reported(path)
        found = [finding for finding in findings if finding.code in reported or finding.is_answer]
        if not found:
            return []
        try:
            kept = suppressed(self._texts.source(path), found).kept
        except Unreadable:
            kept = tuple(found)
        return sorted(kept, key=_place)


def unique(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Each code once at each place: where it always fails, and else where most is known of the way there."""
    best: dict[tuple[str, Span], Diagnostic] = {}
    for finding in findings:
        key = (finding.code, finding.span)
        known = best.get(key)
        if known is None or _weight(finding) > _weight(known):
            best[key] = finding
    return list(best.values())


def _weight(finding: Diagnostic) -> tuple[object, ...]:
    # What is written decides last, so that the order in which files are answered never does.
    steps = tuple((step.span, step.message) for step in finding.evidence)
    return (
        finding.condition is None,
        len(steps),
        finding.message,
        finding.condition.text if finding.condition else "",
        steps,
    )


def _place(finding: Diagnostic) -> tuple[int, int, str, int, int]:
    span = finding.span
    return span.row, span.column, finding.code, span.end_row, span.end_column


def with_imports(finding: Diagnostic, text: str | None) -> Diagnostic:
    """The finding with the imports that its fixes need among their edits, for text, that of its file.

    A fix whose import is impossible can only be shown.
    """
    if not any(fix.imports or fix.unneeded for fix in finding.fixes):
        return finding
    return replace(finding, fixes=tuple(_with_imports(fix, finding.span.path, text) for fix in finding.fixes))


def _with_imports(fix: Fix, path: str, text: str | None) -> Fix:
    from shapefix.repair.imports import NameTaken, import_edits

    try:
        needed = () if text is None else import_edits(path, text, fix)
    except NameTaken as reason:
        message = f"{fix.message}; {reason}"
        return replace(fix, applicability=Applicability.DISPLAY, message=message, imports=(), unneeded=())
    return replace(fix, edits=fix.edits + tuple(needed), imports=(), unneeded=())


class Written:
    """Names files as the user did: findings say where a file really is, which a link may hide."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """names maps the absolute paths of files to what the user called them."""
        self._names = {
            path: name for path, name in names.items() if name == "-" or os.path.abspath(name) != path
        }
        self._real = {name: path for path, name in self._names.items()}

    def finding(self, finding: Diagnostic) -> Diagnostic:
        """The finding with the user's names in all its places."""
        if not self._names:
            return finding
        return replace(
            finding,
            span=self._span(finding.span),
            evidence=tuple(Evidence(self._span(step.span), step.message) for step in finding.evidence),
            fixes=tuple(
                replace(fix, edits=tuple(Edit(self._span(edit.span), edit.content) for edit in fix.edits))
                for fix in finding.fixes
            ),
        )

    def failure(self, failure: Failure) -> Failure:
        """The failure with the user's name for its file."""
        return replace(failure, path=self.path(failure.path))

    def path(self, path: str) -> str:
        """What the user calls the file at an absolute path."""
        return self._names.get(path, path)

    def real(self, name: str) -> str:
        """The absolute path of a file that is called so."""
        return self._real.get(name, name)

    def _span(self, span: Span) -> Span:
        return replace(span, path=self.path(span.path))
