"""The repaired projects under fixtures/ train with guards, and fail with their message for a wrong size."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from fixture_projects import FIXTURES, load, train
from fixture_projects import Project as FixtureProject

from shapefix.guards.run import guarded
from shapefix.sizes.targets import UnknownTarget


@pytest.mark.long
@pytest.mark.slow
def test_guarded_fixtures_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = broken = 0
    for path in sorted(FIXTURES.glob("*/fixture.toml")):
        project = load(path.parent)
        folder = tmp_path / project.folder.name
        shutil.copytree(project.after, folder)
        monkeypatch.chdir(folder)
        guards = 0
        for file in sorted(folder.rglob("*.py")):
            try:
                made = guarded(str(file), "", False)
            except UnknownTarget:
                continue
            file.write_bytes(made.repair.new.encode())
            guards += len(made.guards)
        if guards:
            ran = train(project.command, folder)
            assert ran.returncode == 0, (project.folder.name, ran.stderr)
        written += guards
        for file in sorted(folder.rglob("*.py")):
            broken += _fails_with_a_smaller_size(file, project, folder)
    assert written > 3
    assert broken > 1


def _fails_with_a_smaller_size(file: Path, project: FixtureProject, folder: Path) -> int:
    """Run a project once for each guard of a file, with a part of the argument cut off above the guard."""
    text = file.read_text("utf-8")
    number = 0
    for match in re.finditer(r"^( +)assert (\w+)\.shape\[(-?\d)\] == self\.", text, re.MULTILINE):
        indent, name, dim = match.groups()
        cut = f"{indent}{name} = {name}.narrow({dim}, 0, {name}.shape[{dim}] - 1)\n"
        file.write_text(text[: match.start()] + cut + text[match.start() :], "utf-8")
        ran = train(project.command, folder)
        assert ran.returncode != 0
        assert re.search(rf"AssertionError: {name} has \d+ \w+; self\..* expects \d+", ran.stderr), ran.stderr
        number += 1
    file.write_text(text, "utf-8")
    return number
