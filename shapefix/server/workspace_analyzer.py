"""The sessions of the projects with open texts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

from shapefix.diagnostics import Failure, path_of
from shapefix.displayed_values import CallsOfForward, HeldName
from shapefix.engine.batch import project_root_of
from shapefix.engine.live_session import LiveSession
from shapefix.engine.parse_limits import check_parse_limits
from shapefix.engine.settings import CheckOptions
from shapefix.engine.source_overlay import real_path
from shapefix.engine.tasks import BROKEN
from shapefix.guards.run import GuardFailed, guarded_text
from shapefix.server.messages import (
    CheckedTexts,
    GuardOrder,
    RepairedFile,
    RepairOrder,
    TextUpdate,
    ValuesFound,
)
from shapefix.sizes.program_values import program_values
from shapefix.sizes.targets import UnknownTarget
from shapefix.sources.configuration import ConfigurationError
from shapefix.sources.notebook_text import NotebookText
from shapefix.sources.relevance import mentions_library
from shapefix.sources.text import Unreadable

MOST_PROGRAMS = 2
"""The number of importers with calls of a file that are run for the sizes in it."""


class _OpenProject:
    """One project with open texts."""

    def __init__(self, root: str, options: CheckOptions) -> None:
        self.root = root
        self.session = LiveSession(options)
        self.texts: dict[str, tuple[int, bytes]] = {}
        """Version and content of each open file, by the path of the editor."""
        self.silent: set[str] = set()
        self.invalid: dict[str, Failure] = {}
        self.is_outdated = True
        self.without_values: set[str] = set()
        self._programs: dict[str, frozenset[str]] = {}
        """The importers run for the last values of an open text, by the path of the editor."""

    def set_text(self, path: str, version: int, data: bytes) -> None:
        is_new = path not in self.texts
        self.texts[path] = version, data
        self.without_values.add(path)
        self.is_outdated = True
        at = real_path(path)
        if is_new:
            failure = self.session.invalid_settings(at)
            if failure is not None:
                self.invalid[path] = failure
            elif self.session.is_silent(at):
                self.silent.add(path)
        if path not in self.silent and path not in self.invalid:
            self.session.set_text(path, data)

    def close(self, path: str) -> None:
        del self.texts[path]
        self.silent.discard(path)
        self.without_values.discard(path)
        self._programs.pop(path, None)
        self.invalid.pop(path, None)
        self.session.close(real_path(path))
        self.is_outdated = True

    def note_outdated_values(self) -> None:
        """Note the open texts with values from a file checked since."""
        rechecked = self.session.rechecked
        for path in self.texts.keys() - self.without_values - self.silent - self.invalid.keys():
            at = real_path(path)
            # A program that no longer calls this file has left its values, too.
            if not rechecked.isdisjoint({at, *self._callers(at), *self._programs.get(path, ())}):
                self.without_values.add(path)
        rechecked.clear()

    def values(self, path: str) -> ValuesFound:
        """Return the values in an open text."""
        self.without_values.discard(path)
        version, data = self.texts[path]
        at = real_path(path)
        source = self.session.text(at)
        if path in self.silent or path in self.invalid or source is None or not mentions_library(data):
            return ValuesFound(path, version, {})
        try:
            check_parse_limits(source)
            programs = self._callers(at)
            self._programs[path] = frozenset(programs)
            found = program_values(self.session.modules(at), source, programs)
        except Exception:
            # Sizes are a help: what prevents them is reported by the check of the same text.
            return ValuesFound(path, version, None)
        by_text: dict[str, list[HeldName]] = {}
        for value in found.names:
            name, moved = path, value
            if isinstance(source, NotebookText):
                cell, row = source.place(value.row)
                name, moved = path_of(path, cell), value.moved(row - value.row)
            by_text.setdefault(name, []).append(moved)
        calls: dict[str, list[CallsOfForward]] = {}
        for each in found.calls:
            name, row = self.session.place(at, each.row)
            shown = tuple(replace(call, span=self.session.shown_span(call.span)) for call in each.calls)
            calls.setdefault(name, []).append(CallsOfForward(row, shown))
        values = {name: tuple(several) for name, several in by_text.items()}
        return ValuesFound(path, version, values, {name: tuple(several) for name, several in calls.items()})

    def _callers(self, at: str) -> dict[str, frozenset[str] | None]:
        """Return the programs to run for the values in an open file, with the functions called by them."""
        return dict(itertools.islice(self.session.callers_of(at).items(), MOST_PROGRAMS))

    def renewed(self, options: CheckOptions) -> _OpenProject:
        """Return the same texts in a new session, for new files and settings."""
        made = _OpenProject(self.root, options)
        for path, (version, data) in self.texts.items():
            made.set_text(path, version, data)
        return made


class WorkspaceAnalyzer:
    """Checks the open texts of all projects; is_cancelled is whether newer texts are waiting."""

    def __init__(self, options: CheckOptions, is_cancelled: Callable[[], bool]) -> None:
        self._options = options
        self._is_cancelled = is_cancelled
        self._projects: dict[str, _OpenProject] = {}
        self._of_text: dict[str, _OpenProject] = {}

    def update(self, update: TextUpdate) -> None:
        """Take over new texts and changes on disk."""
        for path in update.closed:
            project = self._of_text.pop(path, None)
            if project is not None:
                project.close(path)
        if update.options is not None:
            self._options = update.options
        if update.with_new_files or update.options is not None:
            renewed = {root: each.renewed(self._options) for root, each in self._projects.items()}
            self._of_text = {path: renewed[each.root] for path, each in self._of_text.items()}
            self._projects = renewed
        for path in update.changed:
            for project in self._projects.values():
                project.session.changed(real_path(path))
                project.is_outdated = True
        for path, (version, data) in update.texts.items():
            self._project(path).set_text(path, version, data)

    def check(self) -> Iterator[CheckedTexts]:
        """Check the outdated projects, one after another; end early if newer texts are waiting."""
        for project in list(self._projects.values()):
            if not project.is_outdated:
                continue
            answer = self._checked(project)
            if answer is None:
                return
            project.is_outdated = False
            yield answer
            if not project.texts:
                self._projects.pop(project.root, None)

    def values(self) -> Iterator[ValuesFound]:
        """Return the values in the open texts with outdated ones; end early if newer texts are waiting."""
        for project in self._projects.values():
            if project.is_outdated:
                continue
            project.note_outdated_values()
            for path in sorted(project.without_values):
                if self._is_cancelled():
                    return
                yield project.values(path)

    def repair(self, order: RepairOrder) -> RepairedFile:
        """Return the text of an open file with all of its safe repairs."""
        project = self._of_text.get(order.path)
        if project is None or order.path in project.silent or order.path in project.invalid:
            return RepairedFile(order.number, {})
        try:
            project.session.refresh()
        except ConfigurationError as error:
            return RepairedFile(order.number, {}, str(error))
        outcome = project.session.repaired(real_path(order.path))
        if isinstance(outcome, Failure):
            return RepairedFile(order.number, {}, outcome.message)
        return RepairedFile(order.number, {path: new for path, _, new in outcome.changes})

    def guard(self, order: GuardOrder) -> RepairedFile:
        """Return the text of an open file with guards in one of its functions."""
        project = self._of_text.get(order.path)
        source = None if project is None else project.session.text(real_path(order.path))
        if source is None:
            return RepairedFile(order.number, {}, "the text has changed")
        try:
            check_parse_limits(source)
            made = guarded_text(source, order.name, remove=False)
        except GuardFailed as error:
            return RepairedFile(order.number, {}, error.failure.message)
        except (UnknownTarget, Unreadable) as error:
            return RepairedFile(order.number, {}, str(error))
        texts = {order.path: made.repair.new.text} if made.repair.changes else {}
        problem = "" if texts else "no other sizes are certainly needed"
        return RepairedFile(order.number, texts, problem)

    def _project(self, path: str) -> _OpenProject:
        if path not in self._of_text:
            root = project_root_of(real_path(path), ())
            if root not in self._projects:
                self._projects[root] = _OpenProject(root, self._options)
            self._of_text[path] = self._projects[root]
        return self._of_text[path]

    def _checked(self, project: _OpenProject) -> CheckedTexts | None:
        session = project.session
        versions = {path: version for path, (version, _) in project.texts.items()}
        invalid = tuple(project.invalid.values())
        try:
            if not session.refresh(self._is_cancelled):
                return None
            return CheckedTexts(
                project.root,
                versions,
                session.findings(),
                tuple(dict.fromkeys((*session.failures(), *_broken_cells(session), *invalid))),
            )
        except ConfigurationError as error:
            failure = error.failure()
            failures = (failure,) if failure is not None else ()
            return CheckedTexts(project.root, versions, (), failures)


def _broken_cells(session: LiveSession) -> Iterator[Failure]:
    """Yield the syntax errors of cells: an editor shows them beside the code."""
    for each in session.unchecked():
        if each.kind == BROKEN:
            yield Failure(each.path, each.message, each.row, each.column)
