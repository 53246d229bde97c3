"""Messages between the server and its process for the analysis; all of them can be pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from shapefix.diagnostics import Diagnostic, Failure
from shapefix.displayed_values import CallsOfForward, HeldName
from shapefix.engine.settings import CheckOptions
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True)
class TextUpdate:
    """Changes since the last update: new texts by path with their versions, closed and changed files.

    changed are paths of files on disk. with_new_files says that files have appeared or gone, or that settings
    may be different. options are new options for all projects.
    """

    texts: Mapping[str, tuple[int, bytes]] = field(default_factory=dict)
    closed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    with_new_files: bool = False
    options: CheckOptions | None = None

    def then(self, later: TextUpdate) -> TextUpdate:
        """Return both updates as one."""
        kept = {path: text for path, text in self.texts.items() if path not in later.closed}
        return TextUpdate(
            {**kept, **later.texts},
            (*(path for path in self.closed if path not in later.texts), *later.closed),
            (*self.changed, *later.changed),
            self.with_new_files or later.with_new_files,
            later.options or self.options,
        )


@dataclass(frozen=True)
class CheckedTexts:
    """The findings in the open texts of one project and in its other files, for these versions."""

    root: str
    versions: Mapping[str, int]
    findings: tuple[Diagnostic, ...]
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class ValuesFound:
    """The values in one version of an open file, by the paths of its texts; None if it cannot be parsed.

    calls are those of its modules, by the same paths. Rows count within each text; places of calls are those
    of the files.
    """

    path: str
    version: int
    values: Mapping[str, tuple[HeldName, ...]] | None
    calls: Mapping[str, tuple[CallsOfForward, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class RepairOrder:
    """A request for the text of an open file with all of its safe repairs."""

    number: int
    path: str


@dataclass(frozen=True)
class GuardOrder:
    """A request for the text of an open file with asserts in the function or class called name."""

    number: int
    path: str
    name: str


@dataclass(frozen=True)
class RepairedFile:
    """The repaired or guarded texts of a file: its own, or those of its changed cells, by their paths.

    problem is the reason for a repair without a text.
    """

    number: int
    texts: Mapping[str, str]
    problem: str = ""


@dataclass(frozen=True)
class AnalysisLost:
    """The process for the analysis has ended while it looked at these texts."""

    paths: tuple[str, ...]


Order = TextUpdate | RepairOrder | GuardOrder
Answer = CheckedTexts | ValuesFound | RepairedFile | AnalysisLost
