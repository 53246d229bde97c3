"""Check and repair the files under the given paths: findings, failures and repaired texts."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH100, PTH109, PTH112, PTH118

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shapefix.diagnostics import Applicability, Diagnostic, Failure, Severity, Span, Unchecked, cell_of
from shapefix.engine.batch import BatchRunner, project_root_of
from shapefix.engine.merge import DisplayPaths, FindingsByFile, with_imports
from shapefix.engine.repairs import FileRepair, repair_file, repair_files, suppress_findings
from shapefix.engine.settings import Settings
from shapefix.engine.source_overlay import SourceOverlay, real_path
from shapefix.engine.suppression_findings import CODES
from shapefix.engine.tasks import FileResult
from shapefix.light_dataclasses import dataclass
from shapefix.sources.discovery import DiscoveredFiles, discover
from shapefix.sources.importers import MOST_SEARCHED, importers, is_importable
from shapefix.sources.project import Project
from shapefix.sources.text import Unreadable, is_notebook
from shapefix.sources.unused_code import UnusedCode

if TYPE_CHECKING:
    from shapefix.sources.notebook_text import NotebookText

Progress = Callable[[int, int], None]
"""Called with the number of finished files and the number of all files."""


@dataclass(frozen=True)
class StandardInput:
    """The content of standard input, and a file name for it; the file need not exist."""

    data: bytes
    filename: str | None = None


@dataclass
class Stats:
    """Counts of checked files.

    importers counts the other files that were run because they import a given one.
    """

    files: int = 0
    cached: int = 0
    irrelevant: int = 0
    importers: int = 0

    def add(self, result: FileResult) -> None:
        """Count one file."""
        self.files += 1
        self.cached += result.cached
        self.irrelevant += not result.relevant


class CheckSession:
    """The files under the given paths, their findings, and their repairs.

    run() checks them; findings, failures and repairs are known afterwards. Internally paths are absolute;
    what a session returns names files as the user did. overlay maps absolute paths to texts that replace the
    files on disk. run_importers also runs the files of the project that import a file given by name, and
    adds the findings in the given files. Raises ConfigurationError.
    """

    def __init__(
        self,
        paths: Sequence[str],
        settings: Settings,
        standard_input: StandardInput | None = None,
        progress: Progress | None = None,
        overlay: Mapping[str, bytes] | None = None,
        *,
        run_importers: bool = True,
    ) -> None:
        self._settings = settings
        self._overlay = SourceOverlay()
        self.stats = Stats()
        self._discovered = discovered_files(paths, settings, standard_input)
        self._names = {real_path(path): path for path in self._discovered.files}
        if standard_input is not None:
            (path,) = self._names
            self._names[path] = standard_input.filename or "-"
            self._overlay.set(path, standard_input.data)
        for path, data in (overlay or {}).items():
            self._overlay.set(path, data)
        self._display = DisplayPaths(self._names, self._notebook)
        self._folders = [os.path.realpath(path) for path in paths if os.path.isdir(path)]
        self._runner = BatchRunner(settings, self._overlay, self._folders)
        self._run_importers = run_importers
        self._unused: dict[str, UnusedCode] = {}
        self._roots: dict[str, str] = {}
        self._findings = FindingsByFile(
            settings, self._overlay, self._names.keys(), self._in_use, self._function, self._is_whole
        )
        self._imports: dict[str, frozenset[str]] = {}
        self._unchecked: dict[str, tuple[Unchecked, ...]] = {}
        self._failed_repairs: list[Failure] = []
        self._last_notebook: NotebookText | None = None
        self._notebook_codes: dict[str, bytes | None] = {}
        self._progress = progress
        self.is_interrupted = False

    def run(self) -> CheckSession:
        """Check all files, and return the session itself."""
        others = self._importers() if self._run_importers else ()
        self._check([*self._names, *others], self._progress)
        self.stats.importers = len(others)
        return self

    def run_until_interrupted(self) -> CheckSession:
        """Check all files, or those before an interrupt by the user.

        Raises KeyboardInterrupt if no file is checked yet.
        """
        try:
            return self.run()
        except KeyboardInterrupt:
            if not self.stats.files:
                raise
            self.is_interrupted = True
            return self

    def _importers(self) -> tuple[str, ...]:
        """Return the other files importing a file given by name."""
        named: dict[str, list[str]] = {}
        for path in self._names:
            if not self._is_in_folder(path) and is_importable(path):
                named.setdefault(project_root_of(path, self._folders), []).append(path)
        found: list[str] = []
        for root, paths in named.items():
            files = discover([root], self._settings.configurations, most=MOST_SEARCHED).files
            found += importers(Project(root), paths, map(real_path, files), self._code_bytes)
        others = [path for path in dict.fromkeys(found) if path not in self._names]
        return tuple(path for path in others if self._settings.invalid(path) is None)

    def _in_use(self, finding: Diagnostic) -> Diagnostic:
        """Mark a finding in unused code, or with a reservation: as info, unless its file was named.

        That only a demo runs the code is a reservation.
        """
        if finding.is_answer:
            return finding
        entry = finding.entry
        is_named = self._is_named(finding.span.path)
        code = self._code(entry.path)
        if not finding.reservation and code.is_demo(entry.path, entry.row):
            finding = replace(finding, reservation=f"only the demo at line {entry.row} runs this code")
        if finding.reservation and not (is_named or self._is_named(entry.path)):
            if not self._settings.preview(finding.span.path):
                finding = replace(finding, severity=Severity.INFO)
        is_leftover = code.is_leftover(finding.span.path, finding.span.row, finding.span.column)
        unused = code.unused(entry.path, entry.row) or ("this method" if is_leftover else "")
        if not unused:
            return finding
        severity = finding.severity if is_named and not is_leftover else Severity.INFO
        return replace(finding, unused=unused, severity=severity)

    def _is_named(self, path: str) -> bool:
        """Whether a file was given by its name, and not by a folder around it."""
        return path in self._names and not self._is_in_folder(path)

    def _function(self, place: Span) -> str:
        """Return the qualified name of the function around a place."""
        return self._code(place.path).function(place.path, place.row)

    def _code(self, path: str) -> UnusedCode:
        folder = os.path.dirname(path)  # noqa: PTH120
        if folder not in self._roots:
            self._roots[folder] = project_root_of(path, self._folders)
        root = self._roots[folder]
        if root not in self._unused:
            self._unused[root] = UnusedCode(root, self._code_bytes)
        return self._unused[root]

    def _is_in_folder(self, path: str) -> bool:
        """Whether a file is checked because a folder around it was given."""
        return any(path.startswith(folder.rstrip(os.sep) + os.sep) for folder in self._folders)

    def _is_whole(self, path: str) -> bool:
        """Whether the whole project of a file is checked."""
        options = self._settings.options
        if options.exclude or options.extend_exclude or self._discovered.failures or self.is_interrupted:
            return False
        root = project_root_of(path, self._folders)
        return root in self._folders or self._is_in_folder(root)

    def _check(self, paths: Sequence[str], progress: Progress | None) -> None:
        done = 0

        def take(result: FileResult) -> None:
            nonlocal done
            done += 1
            if result.path in self._names:
                if result.path not in self._unchecked:
                    self.stats.add(result)
                self._unchecked[result.path] = result.unchecked
            else:
                result = self._only_given(result)
            self._findings.add(result)
            self._imports[result.path] = self._dependencies(result)
            if progress is not None:
                progress(done, len(paths))

        def read() -> Iterator[str]:
            # The first results come after many files are read.
            for path in paths:
                if progress is not None:
                    progress(done, len(paths))
                yield path

        self._runner.check(read(), take)

    def _dependencies(self, result: FileResult) -> frozenset[str]:
        """Return the other files with an influence on a result."""
        return result.found & self._names.keys()

    def _only_given(self, result: FileResult) -> FileResult:
        """Return the result of an importer with its findings in the given files only."""
        found = tuple(
            each for each in result.diagnostics if each.span.path in self._names and not each.is_answer
        )
        return replace(result, diagnostics=found, failures=())

    @property
    def files(self) -> tuple[str, ...]:
        """The given and discovered files, named as the user would name them."""
        return self._discovered.files

    @property
    def links_outside(self) -> tuple[str, ...]:
        """Symbolic links out of the given folders; their targets are not checked."""
        return self._discovered.outside

    @property
    def library_copies(self) -> tuple[tuple[str, str], ...]:
        """Folders with the repository of a library, and its name; their files are not checked."""
        return self._discovered.copies

    @property
    def unused_settings(self) -> tuple[Failure, ...]:
        """Unusable ignore files and requirements."""
        return (*self._discovered.unused, *self._settings.unused())

    @property
    def read(self) -> int:
        """The number of readable, parsed files."""
        return len(self._names.keys() - {failure.path for failure in self._findings.failures})

    def findings(self) -> tuple[Diagnostic, ...]:
        """Return the findings to report, by path and position; fixes contain their imports as edits."""
        return self._displayed(self._findings.kept())

    def hidden(self) -> tuple[Diagnostic, ...]:
        """Return the findings in unused code and those with a reservation, as info."""
        return self._displayed(self._findings.hidden())

    def _displayed(self, findings: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
        path, text = "", None
        shown: list[Diagnostic] = []
        for finding in findings:
            if finding.span.path != path:
                # A file may have thousands of findings, and reading a notebook takes long.
                path = finding.span.path
                text = self._overlay.text(path)
            shown.append(self._display.finding(with_imports(finding, text)))
        return tuple(shown)

    def failures(self) -> tuple[Failure, ...]:
        """Return the unchecked files and folders, with the reasons."""
        return (
            *self._discovered.failures,
            *(self._display.failure(each) for each in (*self._findings.failures, *self._failed_repairs)),
        )

    def unchecked(self) -> tuple[Unchecked, ...]:
        """Return the unchecked places of the given files."""
        found = {each for places in self._unchecked.values() for each in places}
        ordered = sorted(found, key=lambda each: (each.path, each.row or 0, each.column or 0, each.kind))
        places = (self._display.place(each.path, each.row) for each in ordered)
        return tuple(
            replace(each, path=path, row=row) for each, (path, row) in zip(ordered, places, strict=True)
        )

    def source(self, path: str) -> str | None:
        """Return the checked text of a file or a cell, for a path from a finding."""
        real, cell = self._display.real(path), cell_of(path)
        if cell is None:
            return self._overlay.text(real)
        notebook = self._notebook(real)
        return None if notebook is None else notebook.cell(cell[1])

    def _notebook(self, path: str) -> NotebookText | None:
        """Return the text of a notebook. The last one is kept: a report asks for its places one by one."""
        if self._last_notebook is None or self._last_notebook.path != path:
            self._last_notebook = self._overlay.notebook(path)
        return self._last_notebook

    def _code_bytes(self, path: str) -> bytes | None:
        """Return the Python code of a file; that of notebooks is kept, without their outputs."""
        if not is_notebook(path):
            return self._overlay.code(path)
        if path not in self._notebook_codes:
            self._notebook_codes[path] = self._overlay.code(path)
        return self._notebook_codes[path]

    def data(self, path: str) -> bytes | None:
        """Return the checked bytes, None if the file cannot be read."""
        try:
            return self._overlay.data(self._display.real(path))
        except Unreadable:
            return None

    def real_path(self, path: str) -> str:
        """Return the absolute path of a file, by its path in a finding."""
        return self._display.real(path)

    def shown_path(self, path: str) -> str:
        """Return the path of a file in findings, by its absolute path."""
        return self._display.path(path)

    def place(self, path: str, row: int) -> tuple[str, int]:
        """Return the path in findings of a row of a file, and the row there: that in a cell of a notebook."""
        shown, row_there = self._display.place(path, row)
        return shown, row if row_there is None else row_there

    def is_given(self, path: str) -> bool:
        """Check whether the file at an absolute path is under the given paths."""
        return path in self._names

    def standard_output(self) -> bytes:
        """Return the repaired content of standard input."""
        (path,) = self._names
        return self._overlay.data(path)

    def outside(self) -> tuple[str, ...]:
        """Return files with repairable findings outside the given paths."""
        elsewhere = {
            finding.span.path
            for finding in self._findings.kept()
            if finding.span.path not in self._names
            and finding.fix is not None
            and self._settings.fixes(finding.span.path, finding.fix, finding.code)
        }
        return tuple(sorted(elsewhere))

    def repair(self, write: Callable[[str, bytes, bytes], None] | None) -> Iterator[FileRepair]:
        """Repair the given files one by one; findings() and failures() then describe the new texts.

        write is as for repair_files.
        """
        changed: set[str] = set()
        for outcome in repair_files(self._runner, self._findings, self._names.keys(), write):
            if isinstance(outcome, Failure):
                self._failed_repairs.append(outcome)
                continue
            if outcome.is_stale:
                changed.add(outcome.old.path)
            yield self._named(outcome)
        if changed:
            self._unused.clear()
            self._last_notebook = None
            self._notebook_codes.clear()
            stale = [path for path, found in self._imports.items() if path in changed or found & changed]
            self._check(stale, None)

    def suppress(self, reason: str, write: Callable[[str, bytes, bytes], None]) -> Iterator[FileRepair]:
        """Write a `# noqa` comment with the reason for each finding in the given files.

        write is as for repair_files.
        """
        by_file: dict[str, list[Diagnostic]] = {}
        for finding in self._findings.kept():
            if finding.span.path in self._names and not finding.is_answer and finding.code not in CODES:
                by_file.setdefault(finding.span.path, []).append(finding)
        for path, found in sorted(by_file.items()):
            outcome = suppress_findings(self._runner, found, path, reason, write)
            if isinstance(outcome, Failure):
                self._failed_repairs.append(outcome)
            else:
                yield self._named(outcome)

    def repair_finding(
        self, finding: Diagnostic, write: Callable[[str, bytes, bytes], None] | None
    ) -> FileRepair | Failure | None:
        """Repair a finding of findings() or hidden(), safe or not, and the others with its cause in the file.

        None without an automatic fix. write is as for repair_files.
        """
        if finding.fix is None or finding.fix.applicability is Applicability.DISPLAY:
            return None
        key = finding.code, finding.cause

        def is_chosen(found: Diagnostic) -> bool:
            shown = self._display.finding(found)
            return (shown.code, shown.cause) == key

        path = self._display.real(finding.span.path)
        before = self._overlay.get(path)
        outcome = repair_file(self._runner, self._findings, path, write, is_chosen)
        if isinstance(outcome, Failure):
            return self._display.failure(outcome)
        if write is None:
            self._overlay.set(path, before)
        return self._named(outcome)

    def _named(self, outcome: FileRepair) -> FileRepair:
        path = self._display.path(outcome.old.path)
        return FileRepair(
            replace(outcome.old, path=path),
            replace(outcome.new, path=path),
            tuple(self._display.finding(finding) for finding in outcome.applied),
            tuple((self._display.finding(finding), reason) for finding, reason in outcome.rejected),
        )


def discovered_files(
    paths: Sequence[str], settings: Settings, standard_input: StandardInput | None
) -> DiscoveredFiles:
    """Return the files under the given paths, or one file for standard input.

    Raises ConfigurationError if there are no files whose configuration is valid.
    """
    if standard_input is None:
        found = discover(paths, settings.configurations)
        return _with_valid_settings(found, settings)
    name = standard_input.filename
    return DiscoveredFiles((os.path.abspath(name) if name else os.path.join(os.getcwd(), "<stdin>"),), ())


def _with_valid_settings(found: DiscoveredFiles, settings: Settings) -> DiscoveredFiles:
    """Replace the files below an invalid configuration by one failure."""
    invalid = {path: error for path in found.files if (error := settings.invalid(real_path(path)))}
    first = found.invalid or next(iter(invalid.values()), None)
    if first is not None and len(invalid) == len(found.files):
        raise first
    failures = {failure.path: failure for error in invalid.values() if (failure := error.failure())}
    failures |= {failure.path: failure for failure in found.failures}
    return replace(
        found,
        files=tuple(path for path in found.files if path not in invalid),
        failures=tuple(failures.values()),
    )
