"""The interpreter that a script is run with when none is named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from shapefix.runtime.user_python import find_interpreter


def environment(folder: Path) -> Path:
    """A virtual environment, as far as its files tell; returns its interpreter."""
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").touch()
    python = folder / "bin" / "python"
    python.touch()
    return python


@pytest.mark.skipif(sys.platform == "win32", reason="the interpreter is elsewhere")
def test_the_active_one_then_the_nearest_then_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, script = tmp_path / "project", tmp_path / "project" / "src" / "train.py"
    script.parent.mkdir(parents=True)
    (project / "pyproject.toml").touch()
    environment(tmp_path / "venv")  # not of the project
    monkeypatch.chdir(script.parent)
    assert find_interpreter(script, {}) == sys.executable
    above = environment(project / "venv")
    assert find_interpreter(script, {}) == str(above)
    beside = environment(script.parent / ".venv")
    assert find_interpreter(script, {}) == str(beside)
    conda = environment(tmp_path / "conda")
    assert find_interpreter(script, {"CONDA_PREFIX": str(tmp_path / "conda")}) == str(conda)
    active = environment(tmp_path / "active")
    both = {"CONDA_PREFIX": str(tmp_path / "conda"), "VIRTUAL_ENV": str(tmp_path / "active")}
    assert find_interpreter(script, both) == str(active)
    assert find_interpreter(script, {"VIRTUAL_ENV": str(tmp_path / "deleted")}) == str(beside)
