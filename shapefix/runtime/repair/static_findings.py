"""Static findings in a copy: the findings of `check` in the executed files."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH112, PTH118

from __future__ import annotations

import os
from collections.abc import Iterable

from shapefix.diagnostics import Applicability, Diagnostic, Severity, cell_of
from shapefix.engine.batch import project_root_of
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings
from shapefix.runtime.repair.patched_sources import PatchedSources

_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


class StaticFindings:
    """Checks copies of the files of one project: those below its root or the current folder."""

    def __init__(self, start: str) -> None:
        """start is a file or a folder of the project. Raises ConfigurationError."""
        # All rules, since a run confirms their findings.
        self._settings = Settings(CheckOptions(extend_select=("ALL",), unsafe_fixes=True, use_cache=False))
        self._reported = Settings(CheckOptions())
        self._known: dict[object, tuple[Diagnostic, ...]] = {}
        path = os.path.realpath(start)
        path = os.path.join(path, "__main__.py") if os.path.isdir(path) else path
        self._reported.reported(path)
        self._roots = (project_root_of(path, ()), os.path.realpath(os.curdir))

    def findings(self, sources: PatchedSources, files: Iterable[str]) -> tuple[Diagnostic, ...]:
        """The findings in some files: errors first, then those with a safe fix. Raises Unreadable."""
        own = tuple(path for path in map(os.path.realpath, files) if self.owns(path))
        key = (own, sources.key)
        if own and key not in self._known:
            overlay = {new.path: new.encode() for _, new in sources.file_changes()}
            found = CheckSession(own, self._settings, overlay=overlay, run_importers=False).run().findings()
            self._known[key] = tuple(sorted((each for each in found if not each.is_answer), key=_rank))
        return self._known[key] if own else ()

    def is_reported(self, finding: Diagnostic) -> bool:
        """Whether `check` reports a finding with the configuration of the project."""
        cell = cell_of(finding.span.path)
        return finding.code in self._reported.reported(finding.span.path if cell is None else cell[0])

    def owns(self, path: str) -> bool:
        """Whether a real path belongs to the project; other files are not repaired."""
        return any(os.path.commonpath((root, path)) == root for root in self._roots)


def _rank(finding: Diagnostic) -> tuple[int, bool]:
    safe = finding.fix is not None and finding.fix.applicability is Applicability.SAFE
    return _ORDER[finding.severity], not safe
