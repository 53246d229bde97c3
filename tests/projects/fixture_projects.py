"""The training projects under fixtures/, and how to run one for real.

A project states in fixture.toml how it dies ([before]) and what it prints when it learns ([after]). One with
nothing wrong has no [before], and no folder of that name; one that learns something wrong without a word has
findings there, and no exception. `raised` under [before] is the project's own line that the traceback ends
in, where that is not the line of a finding.

Under [after], `repaired` lists the lines of before that the repair replaces, or in front of which it inserts,
where those are not the lines of the findings. `unsafe` says that the repair takes --unsafe-fixes, `by_hand`
that a person has made it, as shapefix only suggests something; `honest` lists lines that take --unsafe-fixes
among others that do not: without them the project trains, and hides the next exception. `half` is the
exception, with its message, of a project that is repaired in part only, where that is another one.

`grows` under [before] is the pattern of what a project prints that grows while it trains, and that does not
grow after its repair: it learns as well before as after.
"""

from __future__ import annotations

import os
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fork_server

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


@dataclass(frozen=True, order=True)
class Finding:
    """A finding as fixture.toml states it: file is relative to the project, line counts from 1."""

    code: str
    file: str
    line: int


@dataclass(frozen=True, order=True)
class Place:
    """A line of a project's own file."""

    file: str
    line: int


@dataclass(frozen=True)
class Death:
    """How a project dies before its repair: with what, and at one of which of its own lines."""

    exception: str
    message: str
    raised: frozenset[Place]


@dataclass(frozen=True)
class Project:
    """One folder of fixtures/: the same small project before and after its repair.

    death is None for a project that does not crash. One with nothing wrong has no findings either, and is
    only there as after. repaired has a place twice where it is repaired twice, and none of those in honest.
    """

    folder: Path
    command: tuple[str, ...]
    death: Death | None
    findings: tuple[Finding, ...]
    repaired: tuple[Place, ...]
    prints: str
    unsafe: bool
    by_hand: bool
    honest: tuple[Place, ...]
    half: str | None
    grows: str | None

    @property
    def before(self) -> Path:
        return self.folder / "before"

    @property
    def after(self) -> Path:
        return self.folder / "after"


def load(folder: Path) -> Project:
    """Read folder/fixture.toml. Raises KeyError where an entry is missing."""
    stated: dict[str, Any] = tomllib.loads((folder / "fixture.toml").read_text("utf-8"))
    before, after = stated.get("before"), stated["after"]
    findings = tuple(sorted(Finding(**finding) for finding in before["findings"])) if before else ()
    found = tuple(Place(finding.file, finding.line) for finding in findings)
    death = None
    if before and "exception" in before:
        raised = frozenset([Place(**before["raised"])] if "raised" in before else found)
        death = Death(before["exception"], before["message"], raised)
    return Project(
        folder=folder,
        command=tuple(stated["command"]),
        death=death,
        findings=findings,
        repaired=tuple(Place(**place) for place in after["repaired"]) if "repaired" in after else found,
        prints=after["prints"],
        unsafe=after.get("unsafe", False),
        by_hand=after.get("by_hand", False),
        honest=tuple(Place(**place) for place in after.get("honest", ())),
        half=after.get("half"),
        grows=before.get("grows") if before else None,
    )


def sources(project: Path) -> dict[str, str]:
    """The text of every .py file of a project, by its path in the project; newlines as they are on disk."""
    return {
        path.relative_to(project).as_posix(): path.read_bytes().decode("utf-8")
        for path in sorted(project.rglob("*.py"))
    }


def train(command: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run command in folder, with torch imported already; leaves no byte code behind."""
    environment = os.environ | fork_server.STARTUP
    return subprocess.run(
        [fork_server.interpreter() if word == "python" else word for word in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
