"""Merge per-file results: deduplicate findings and drop suppressed ones."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH100, PTH119

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shapefix.diagnostics import (
    Applicability,
    Diagnostic,
    Edit,
    Evidence,
    Failure,
    Fix,
    Role,
    Severity,
    Span,
    cell_of,
    in_run_order,
    path_of,
)
from shapefix.engine.settings import Settings
from shapefix.engine.source_overlay import SourceOverlay
from shapefix.engine.suppression_findings import CODES, UNUSED, SuppressionRules
from shapefix.engine.tasks import FileResult
from shapefix.sources.suppressions import apply_suppressions
from shapefix.sources.text import Unreadable, is_notebook

if TYPE_CHECKING:
    from shapefix.sources.notebook_text import NotebookText

_TESTS = frozenset({"test", "tests", "demo", "example"})
"""Words in the names of files with calls for their own sake."""


class FindingsByFile:
    """Collects the results of files by absolute path.

    given are the checked files; checking them may find something in other files. in_use adds to a finding
    how the project uses its code, and hides one in unused code or in a demo as info. function returns the
    qualified name of the function around a place, "" without one. is_whole says that the whole project of a
    file is checked, so that what its comments suppress is known.
    """

    def __init__(
        self,
        settings: Settings,
        overlay: SourceOverlay,
        given: Collection[str],
        in_use: Callable[[Diagnostic], Diagnostic] = lambda finding: finding,
        function: Callable[[Span], str] = lambda place: "",
        is_whole: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self._is_whole = is_whole
        self._commented: set[str] = set()
        self._settings = settings
        self._in_use = in_use
        self._function = function
        self._called_from: dict[str, frozenset[tuple[str, str]]] = {}
        self._overlay = overlay
        self._given = given
        self._found_from: dict[str, tuple[Diagnostic, ...]] = {}
        self._failures: dict[str, tuple[Failure, ...]] = {}
        self._selected: list[Diagnostic] | None = None

    def add(self, result: FileResult) -> None:
        """Add a result; it replaces an earlier one for the same file."""
        self._selected = None
        for known, new in ((self._found_from, result.diagnostics), (self._failures, result.failures)):
            known.pop(result.path, None)
            if new:
                known[result.path] = new  # type: ignore[assignment]
        self._commented.discard(result.path)
        if result.has_suppressions and result.path in self._given:
            self._commented.add(result.path)
        self._called_from.pop(result.path, None)
        if result.called:
            self._called_from[result.path] = result.called

    @property
    def failures(self) -> tuple[Failure, ...]:
        """All failures, by path and position."""
        found = {failure for failures in self._failures.values() for failure in failures}
        return tuple(
            sorted(found, key=lambda each: (each.path, each.row or 0, each.column or 0, each.message))
        )

    def reaching(self, path: str) -> tuple[str, ...]:
        """Return the other files with findings in the file at path."""
        return tuple(
            checked
            for checked, found in self._found_from.items()
            if checked != path and any(each.span.path == path for each in found)
        )

    def kept(self) -> tuple[Diagnostic, ...]:
        """Return the findings to report, by path, row, column and code. Raises ConfigurationError."""
        return _with_habits([each for each in self._all() if not _is_hidden(each)])

    def hidden(self) -> tuple[Diagnostic, ...]:
        """Return the findings in code without a use, in the same order. Raises ConfigurationError."""
        return _with_habits([each for each in self._all() if _is_hidden(each)])

    def _all(self) -> list[Diagnostic]:
        """Return the reported findings and the hidden ones; a later call reuses the list."""
        if self._selected is None:
            by_path: dict[str, list[Diagnostic]] = {}
            for finding in self.best(
                each
                for path, found in self._found_from.items()
                for each in found
                if not self._is_refuted(path, each)
            ):
                by_path.setdefault(finding.span.path, []).append(finding)
            for path in self._commented:
                by_path.setdefault(path, [])
            self._selected = [each for path in sorted(by_path) for each in self.selected(path, by_path[path])]
        return self._selected

    def best(self, findings: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Keep one finding per code and place, of several the one with the fewest assumptions."""
        return unique(map(self._in_use, findings))

    def _is_refuted(self, path: str, finding: Diagnostic) -> bool:
        """Whether a function fails for some arguments or in some branch only, and not for its callers.

        The finding is from the run of its own file, without a call of the function. The runs of the files
        that call it have reported it, too, if it fails for them. Tests may call it for another reason.
        """
        condition, entry = finding.condition, finding.entry
        is_conditional = condition is not None and not condition.constant
        if not (is_conditional or finding.in_branch) or entry.path != path or finding.is_answer:
            return False
        callers = [
            each
            for each, called in self._called_from.items()
            if any(file == path for file, _ in called) and not _is_test(each)
        ]
        name = self._function(entry) if callers else ""
        if not name:
            return False
        reached = [each for each in callers if (path, name) in self._called_from[each]]
        key = (finding.code, finding.span)
        return bool(reached) and not any(
            (other.code, other.span) == key for each in reached for other in self._found_from.get(each, ())
        )

    def wanted(self, path: str, findings: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Drop the hidden findings in one file, and those suppressed by its comments or its configuration."""
        return [each for each in self.selected(path, findings) if not _is_hidden(each)]

    def selected(self, path: str, findings: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Drop the findings in one file suppressed by its comments or its configuration."""
        if path not in self._given and self._settings.excludes(path):
            return []
        reported = self._settings.reported(path)
        found = [finding for finding in findings if finding.code in reported or finding.is_answer]
        if self._settings.options.ignore_noqa:
            return sorted(found, key=_place)
        about_comments = self._suppression_rules(path, reported)
        if not found and about_comments.is_empty:
            return []
        try:
            source = self._overlay.source(path)
        except Unreadable:
            return sorted(found, key=_place)
        result = apply_suppressions(source, found)
        kept = list(result.kept)
        if not about_comments.is_empty:
            kept += about_comments.findings(source, result)
        return sorted(kept, key=_place)

    def _suppression_rules(self, path: str, reported: frozenset[str]) -> SuppressionRules:
        if path not in self._commented or CODES.isdisjoint(reported):
            return SuppressionRules(frozenset(), is_certain=False)
        is_certain = UNUSED in reported and not self._failures and self._is_whole(path)
        return SuppressionRules(reported, is_certain)


def _is_test(path: str) -> bool:
    folder, name = os.path.split(path)
    return os.path.basename(folder) in _TESTS or not _TESTS.isdisjoint(name.partition(".")[0].split("_"))


def _is_hidden(finding: Diagnostic) -> bool:
    is_info = finding.severity is Severity.INFO and not finding.is_answer
    return is_info and bool(finding.unused or finding.reservation)


def _with_habits(findings: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Give all findings of a habit the cause of the first one."""
    first: dict[tuple[str, str], Diagnostic] = {}
    for finding in in_run_order(each for each in findings if each.habit):
        first.setdefault((finding.code, finding.habit), finding)
    return tuple(
        replace(each, follows=first[each.code, each.habit].cause) if each.habit else each for each in findings
    )


def unique(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Keep one finding per code and place: an unconditional one, else the one with the most evidence."""
    return _best(findings, _weight)


def unique_in_run(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Keep one finding of a run per code and place: the most evidence, and of the same the first one."""

    def weight(finding: Diagnostic) -> tuple[object, ...]:
        shown = sum(step.role not in (Role.CALL, Role.HISTORY) for step in finding.evidence)
        return not finding.reservation, finding.condition is None, shown, -finding.moment

    return _best(findings, weight)


def _best(
    findings: Iterable[Diagnostic], weight: Callable[[Diagnostic], tuple[object, ...]]
) -> list[Diagnostic]:
    best: dict[tuple[str, Span], Diagnostic] = {}
    for finding in findings:
        key = (finding.code, finding.span)
        known = best.get(key)
        if known is None or weight(finding) > weight(known):
            best[key] = finding
    return list(best.values())


def _weight(finding: Diagnostic) -> tuple[object, ...]:
    # The message decides last, so that the order of the files never does.
    steps = tuple((step.span, step.message) for step in finding.evidence)
    return (
        not finding.reservation,
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
    """Add the imports needed by the fixes to their edits; text is the text of the finding's file.

    A fix whose import is impossible becomes display-only.
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


class DisplayPaths:
    """Maps real paths to the user's names; the two differ for links."""

    def __init__(
        self,
        names: Mapping[str, str],
        notebook: Callable[[str], NotebookText | None] = lambda path: None,
    ) -> None:
        """names maps absolute paths to the user's names for them; notebook reads a notebook by its path."""
        self._notebook = notebook
        self._names = {
            path: name for path, name in names.items() if name == "-" or os.path.abspath(name) != path
        }
        self._real = {name: path for path, name in self._names.items()}

    def finding(self, finding: Diagnostic) -> Diagnostic:
        """Return the finding with the user's file names in all its spans."""
        spans = (finding.span, finding.cause.span, *(step.span for step in finding.evidence))
        if not self._names and not any(is_notebook(span.path) for span in spans):
            return finding
        notebook = self._notebook(finding.span.path) if is_notebook(finding.span.path) else None
        return replace(
            finding,
            message=_with_cells(finding.message, notebook),
            span=self._span(finding.span),
            evidence=tuple(self._step(step) for step in finding.evidence),
            follows=finding.follows and replace(finding.follows, span=self._span(finding.follows.span)),
            fixes=tuple(self._fix(fix, notebook) for fix in finding.fixes),
        )

    def failure(self, failure: Failure) -> Failure:
        """Return the failure with the user's name for its file, and its cell in a notebook."""
        path, row = self.place(failure.path, failure.row)
        return replace(failure, path=path, row=row)

    def place(self, path: str, row: int | None) -> tuple[str, int | None]:
        """Return the user's name for a file, or for the cell of a notebook, and the row in it."""
        notebook = None if row is None or not is_notebook(path) else self._notebook(path)
        if notebook is None or row is None:
            return self.path(path), row
        cell, row = notebook.place(row)
        return path_of(self.path(path), cell), row

    def path(self, path: str) -> str:
        """Return the user's name for the file at an absolute path."""
        return self._names.get(path, path)

    def real(self, name: str) -> str:
        """Return the absolute path of a file by the user's name for it, or for one of its cells."""
        cell = cell_of(name)
        name = name if cell is None else cell[0]
        return self._real.get(name, name)

    def _fix(self, fix: Fix, notebook: NotebookText | None) -> Fix:
        return replace(
            fix,
            message=_with_cells(fix.message, notebook),
            remark=_with_cells(fix.remark, notebook),
            edits=tuple(Edit(self._span(edit.span), edit.content) for edit in fix.edits),
        )

    def _step(self, step: Evidence) -> Evidence:
        notebook = self._notebook(step.span.path) if is_notebook(step.span.path) else None
        message, label = _with_cells(step.message, notebook), _with_cells(step.label, notebook)
        return replace(step, span=self._span(step.span), message=message, label=label)

    def _span(self, span: Span) -> Span:
        path, row = self.place(span.path, span.row)
        assert row is not None
        return replace(span, path=path, row=row, end_row=span.end_row - span.row + row)


_LINE = re.compile(r"(?<=\bline )\d+")


def _with_cells(text: str, notebook: NotebookText | None) -> str:
    """Name the cells of the lines in the message of a finding: `line 78` becomes `line 3 of cell 5`."""
    if notebook is None:
        return text

    def named(found: re.Match[str]) -> str:
        cell, row = notebook.place(int(found[0]))
        return f"{row} of cell {cell}"

    return _LINE.sub(named, text)
