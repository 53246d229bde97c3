"""Check one file, in this process or in a worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, cast

from shapefix.diagnostics import Diagnostic, Failure, Unchecked
from shapefix.engine.parse_limits import check_parse_limits
from shapefix.engine.syntax_errors import syntax_failure
from shapefix.light_dataclasses import dataclass
from shapefix.rulebook.pages import RulebookError
from shapefix.sources.notebooks import OtherLanguage
from shapefix.sources.relevance import mentions_library
from shapefix.sources.suppressions import has_suppressions
from shapefix.sources.text import SourceText, Unreadable, is_notebook, source_of

if TYPE_CHECKING:
    from shapefix.engine.analysis import FileAnalyzer
    from shapefix.engine.interpretation import ProjectModules
    from shapefix.sources.notebook_text import NotebookText


@dataclass(frozen=True)
class FileTask:
    """A file to check: its absolute path, its bytes, the root of its project, and the rules to apply.

    transformers_version is the version that the file is written for, None for the newest; oldest_versions
    are the oldest versions of libraries that its project permits, by name. signatures are declared sizes of
    functions, by qualified name.
    """

    path: str
    data: bytes
    root: str
    rules: frozenset[str]
    transformers_version: str | None = None
    oldest_versions: tuple[tuple[str, str], ...] = ()
    signatures: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class FileResult:
    """The result of checking the file at path; diagnostics may be in other files of its project.

    found and missing are the paths that the result depends on, besides the file itself. unchecked are places
    that could not be checked. relevant is false if the file uses no library that rules know. cached results
    come from an earlier run; results that are not cacheable describe this run only. called are the functions
    of other files that the file calls, by path and qualified name. has_suppressions is true if comments in
    the file name rules.
    """

    path: str
    diagnostics: tuple[Diagnostic, ...] = ()
    failures: tuple[Failure, ...] = ()
    found: frozenset[str] = field(default=frozenset(), repr=False)
    missing: frozenset[str] = field(default=frozenset(), repr=False)
    unchecked: tuple[Unchecked, ...] = ()
    relevant: bool = True
    cached: bool = False
    cacheable: bool = True
    called: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)
    has_suppressions: bool = False


BROKEN = "cell"
"""The kind of the cells of a notebook with a syntax error."""


class FileChecker:
    """Checks one file after another; consecutive files of one project share parsed modules.

    source returns the text of the project's other files, and may raise Unreadable.
    """

    def __init__(self, source: Callable[[str], SourceText]) -> None:
        self._source = source
        self._analyzer: FileAnalyzer | None = None
        self._scope: object = None

    def check(self, task: FileTask) -> FileResult:
        """Check one file. Never raises, except to end the process."""
        path = task.path
        try:
            source = source_of(path, task.data)
            code = source.text.encode(errors="replace") if is_notebook(path) else task.data
            if not mentions_library(code):
                failure, cells = syntax_failure(source), _broken_cells(source)
                failures = () if failure is None else (failure,)
                return FileResult(path, failures=failures, unchecked=cells, relevant=False)
            check_parse_limits(source)
        except OtherLanguage:
            return FileResult(path, relevant=False)
        except Unreadable as error:
            return FileResult(path, failures=(Failure(path, error.message, error.row, error.column),))
        try:
            analyzer = self._analyzer_for(task)
        except RulebookError as error:
            return FileResult(path, failures=(Failure(path, f"cannot be checked: {error}"),))
        analysis = analyzer.analyze(path, source)
        return FileResult(
            path,
            analysis.diagnostics + analysis.answers,
            analysis.failures,
            frozenset(analysis.probes.found),
            frozenset(analysis.probes.missing),
            analysis.unchecked + _broken_cells(source),
            cacheable=analysis.cacheable,
            called=analysis.called,
            has_suppressions=has_suppressions(task.data),
        )

    def forget(self, path: str) -> None:
        """Drop cached knowledge of a changed file."""
        if self._analyzer is not None:
            self._analyzer.forget(path)

    def modules(self, task: FileTask) -> ProjectModules:
        """Return the parsed modules for the project of a task."""
        return self._analyzer_for(task).modules

    def _analyzer_for(self, task: FileTask) -> FileAnalyzer:
        scope = (task.root, task.rules, task.transformers_version, task.oldest_versions, task.signatures)
        if self._analyzer is None or scope != self._scope:
            # Imported late: `--version` and cached runs do not need them.
            from shapefix.engine.light_libcst import import_libcst

            import_libcst()
            from shapefix.engine.analysis import FileAnalyzer
            from shapefix.sources.project import Project

            self._analyzer = FileAnalyzer(
                Project(task.root),
                task.rules,
                self._parsable,
                task.transformers_version,
                dict(task.oldest_versions),
                dict(task.signatures),
            )
            self._scope = scope
        return self._analyzer

    def _parsable(self, path: str) -> SourceText:
        source = self._source(path)
        check_parse_limits(source)
        return source


def _broken_cells(source: SourceText) -> tuple[Unchecked, ...]:
    """Return the cells of a notebook with a syntax error, often scratch; the others are checked."""
    if not is_notebook(source.path):
        return ()
    notebook = cast("NotebookText", source)
    return tuple(
        Unchecked(source.path, f"cannot be parsed: {each.message}", notebook.row(each), each.column, BROKEN)
        for each in notebook.broken
    )
