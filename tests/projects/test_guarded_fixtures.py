"""The repaired projects under fixtures/ train with guards, too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fixture_projects import FIXTURES, load, train

from shapefix.guards.run import guarded
from shapefix.shapes.targets import UnknownTarget


@pytest.mark.long
@pytest.mark.slow
def test_guarded_fixtures_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0
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
    assert written > 3
