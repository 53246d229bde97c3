"""The training projects under fixtures/, and how to run one for real."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


@dataclass(frozen=True, order=True)
class Finding:
    """A finding as fixture.toml states it: file is relative to the project, line counts from 1."""

    code: str
    file: str
    line: int


@dataclass(frozen=True)
class Project:
    """One folder of fixtures/: the same small project before and after its repair."""

    folder: Path
    command: tuple[str, ...]
    exception: str
    message: str
    findings: tuple[Finding, ...]
    prints: str

    @property
    def before(self) -> Path:
        return self.folder / "before"

    @property
    def after(self) -> Path:
        return self.folder / "after"


def load(folder: Path) -> Project:
    """Read folder/fixture.toml. Raises KeyError where an entry is missing."""
    stated: dict[str, Any] = tomllib.loads((folder / "fixture.toml").read_text("utf-8"))
    return Project(
        folder=folder,
        command=tuple(stated["command"]),
        exception=stated["before"]["exception"],
        message=stated["before"]["message"],
        findings=tuple(sorted(Finding(**finding) for finding in stated["before"]["findings"])),
        prints=stated["after"]["prints"],
    )


def sources(project: Path) -> dict[str, str]:
    """The text of every .py file of a project, by its path in the project; newlines as they are on disk."""
    return {
        path.relative_to(project).as_posix(): path.read_bytes().decode("utf-8")
        for path in sorted(project.rglob("*.py"))
    }


def train(command: tuple[str, ...], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run command in folder, with this interpreter in the place of `python`; leaves no byte code behind."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable if word == "python" else word for word in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
