"""A check of the open texts of an editor, repeated as they change."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH118, PTH206, PTH208

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace

from shapefix.diagnostics import Failure, Span
from shapefix.engine.batch import project_root_of
from shapefix.engine.interpretation import ProjectModules
from shapefix.engine.merge import DisplayPaths
from shapefix.engine.repairs import FileRepair, repair_file
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings
from shapefix.engine.source_overlay import real_path
from shapefix.engine.tasks import FileChecker, FileResult
from shapefix.sources.discovery import discover, is_excluded
from shapefix.sources.gitignore import ignored_above
from shapefix.sources.importers import (
    MOST_SEARCHED,
    ImportStatement,
    distances,
    importers_at,
    is_importable,
    references_of,
)
from shapefix.sources.project import Project
from shapefix.sources.text import SourceText, Unreadable

Called = frozenset[tuple[str, str]]
"""Functions called in other files, by path and qualified name."""
_INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders with the code of libraries, which an editor opens to show a definition."""


class LiveSession(CheckSession):
    """The open texts of one project; findings() is that of a check of these files with these texts.

    A change reruns the files that depend on the changed one, and no others. Files on disk are assumed to be
    the same until changed() says otherwise; a new LiveSession is for files that have appeared or gone, and
    for changed settings.
    """

    def __init__(self, options: CheckOptions) -> None:
        super().__init__((), Settings(replace(options, jobs=1, use_cache=False)))
        self._checker = FileChecker(self._overlay.source)
        self._runner.checker = self._checker
        self._found: dict[str, frozenset[str]] = {}
        self._outdated: set[str] = set()
        self._of_project: set[str] = set()
        self._called: dict[str, Called | None] = {}
        self._references: dict[str, dict[str, tuple[ImportStatement, ...]]] = {}
        self._searched: dict[str, frozenset[str]] = {}
        self._distances: dict[tuple[str, tuple[str, ...]], Mapping[str, int]] = {}
        self._projects: dict[str, Project] = {}
        self.rechecked: set[str] = set()
        """The files checked by refresh() since the set was last cleared."""

    def set_text(self, name: str, data: bytes) -> str:
        """Open a file with this text, or replace the text of an open one; return its absolute path."""
        path = real_path(name)
        if self._names.get(path) != name:
            self._names[path] = name
            self._display = DisplayPaths(self._names, self._notebook)
        elif self._overlay.get(path) == data:
            return path
        self._overlay.set(path, data)
        self._forget(path)
        return path

    def close(self, path: str) -> None:
        """Close an open file, by its absolute path."""
        if self._names.pop(path, None) is None:
            return
        self._display = DisplayPaths(self._names, self._notebook)
        self._overlay.set(path, None)
        self._unchecked.pop(path, None)
        self._forget(path)

    def changed(self, path: str) -> None:
        """Note a change of a file on disk, by its absolute path."""
        if self._overlay.get(path) is None:
            self._forget(path)

    def refresh(self, is_cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Check the outdated files; False if is_cancelled ended it early. Raises ConfigurationError."""
        others = self._importers()
        wanted = [
            path for path in (*self._names, *others) if path in self._outdated or path not in self._found
        ]
        for path in self._found.keys() - self._names.keys() - set(others):
            self._drop(path)
        for path in wanted:
            self._check((path,), None)
            self._outdated.discard(path)
            self.rechecked.add(path)
            if is_cancelled():
                return False
        self.stats.importers = len(others)
        return True

    def is_silent(self, path: str) -> bool:
        """Whether a file is not to be checked: of a library, excluded, or ignored by git."""
        if not _INSTALLED.isdisjoint(path.split(os.sep)):
            return True
        if is_excluded(path, self._settings.configurations):
            return True
        return _is_ignored(path, project_root_of(path, ()))

    def invalid_settings(self, path: str) -> Failure | None:
        """Return the error in the configuration of a file, None if it is valid."""
        error = self._settings.invalid(path)
        return None if error is None else error.failure()

    def text(self, path: str) -> SourceText | None:
        """Return the text of a file in its present state, None if it cannot be read."""
        try:
            return self._overlay.source(path)
        except Unreadable:
            return None

    def repaired(self, path: str) -> FileRepair | Failure:
        """Return an open file with all permitted repairs; its own text is not changed."""
        before = self._overlay.get(path)
        outcome = repair_file(self._runner, self._findings, path, None)
        self._overlay.set(path, before)
        if isinstance(outcome, Failure):
            return self._display.failure(outcome)
        return self._named(outcome)

    def shown_span(self, span: Span) -> Span:
        """Return a span of a file as findings have it."""
        path, row = self.place(span.path, span.row)
        return replace(span, path=path, row=row, end_row=span.end_row - span.row + row)

    def modules(self, path: str) -> ProjectModules:
        """Return the parsed modules of the project of an open file."""
        return self._checker.modules(self._runner.task(path, self._overlay.data(path)))

    def importers_of(self, path: str) -> tuple[str, ...]:
        """Return the importers of an open file, the best ones first."""
        if self._is_in_folder(path) or not is_importable(path):
            return ()
        return self._importers_in(project_root_of(path, ()), (path,))

    def callers_of(self, path: str) -> dict[str, frozenset[str] | None]:
        """Return the importers of an open file with calls of its functions, the best ones first.

        Each has the qualified names of these functions, None if its calls are not known.
        """
        callers: dict[str, frozenset[str] | None] = {}
        for importer in self.importers_of(path):
            called = self._called.get(importer)
            names = None if called is None else frozenset(name for at, name in called if at == path)
            if names is None or names:
                callers[importer] = names
        return callers

    def _importers(self) -> tuple[str, ...]:
        named: dict[str, list[str]] = {}
        for path in self._names:
            if is_importable(path):
                named.setdefault(project_root_of(path, ()), []).append(path)
        found: list[str] = []
        for root, paths in named.items():
            found += self._importers_in(root, tuple(paths))
        others = [path for path in dict.fromkeys(found) if path not in self._names]
        return tuple(path for path in others if self._settings.invalid(path) is None)

    def _importers_in(self, root: str, given: tuple[str, ...]) -> tuple[str, ...]:
        """Return the importers of the given files in their project, the best ones first."""
        references = self._references_of(root)
        if (root, given) not in self._distances:
            self._distances[root, given] = distances(self._project(root), given, references)
        return importers_at(self._distances[root, given], given, self._code_bytes)

    def _project(self, root: str) -> Project:
        if root not in self._projects:
            self._projects[root] = Project(root)
        return self._projects[root]

    def _references_of(self, root: str) -> Mapping[str, tuple[ImportStatement, ...]]:
        """Return the imports of the files of a project."""
        if root not in self._references:
            files = discover([root], self._settings.configurations, most=MOST_SEARCHED).files
            self._searched[root] = frozenset(map(real_path, files))
            self._references[root] = references_of(sorted(self._searched[root]), self._code_bytes)
        return self._references[root]

    def _dependencies(self, result: FileResult) -> frozenset[str]:
        self._found[result.path] = result.found
        is_partial = bool(result.failures or result.unchecked)
        self._called[result.path] = None if is_partial and not result.called else result.called
        if result.cacheable:
            self._of_project.discard(result.path)
        else:
            self._of_project.add(result.path)
        return result.found

    def _forget(self, path: str) -> None:
        """Drop cached knowledge of a changed file, and note the outdated results."""
        self._checker.forget(path)
        for unused in self._unused.values():
            unused.forget(path)
        self._last_notebook = None
        self._notebook_codes.pop(path, None)
        for root, references in self._references.items():
            if path in self._searched[root]:
                before = references.pop(path, None)
                references.update(references_of((path,), self._code_bytes))
                if references.get(path) != before:
                    self._distances.clear()
        self._outdated |= {path, *self._of_project}
        self._outdated |= {each for each, found in self._found.items() if path in found}

    def _drop(self, path: str) -> None:
        """Remove the result of a file, now neither open nor an importer of an open one."""
        self._found.pop(path, None)
        self._imports.pop(path, None)
        self._called.pop(path, None)
        self._of_project.discard(path)
        self._outdated.discard(path)
        self._findings.add(FileResult(path))


def _is_ignored(path: str, root: str) -> bool:
    """Whether git ignores a file, or a folder between it and the root of its project."""
    if not path.startswith(root.rstrip(os.sep) + os.sep):
        return False
    ignored = ignored_above(root, _without_report)
    at = root
    for name in os.path.relpath(path, root).split(os.sep):
        ignored = ignored.inside(at, _names_in(at), _without_report)
        at = os.path.join(at, name)
        if ignored(at, at != path):
            return True
    return False


def _names_in(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return frozenset()


def _without_report(failure: Failure) -> None:
    """Ignore an unusable ignore file: `shapefix check` reports it."""
