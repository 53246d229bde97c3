"""The extension of VS Code: checked, built and packaged by its own scripts."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

import shapefix

SOURCE = Path(shapefix.__file__).parent / "editors" / "vscode"


def _npm(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["npm", *arguments], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the extension with its packages installed."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm")
    if _npm("view", "esbuild", "version").returncode != 0:
        pytest.skip("needs a registry of npm packages")
    copy = tmp_path / "vscode"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
    installed = _npm("ci", "--no-audit", "--no-fund", cwd=copy)
    assert installed.returncode == 0, installed.stderr
    return copy


@pytest.mark.editor
@pytest.mark.slow
def test_the_extension_is_packaged(project: Path) -> None:
    packaged = _npm("run", "package", cwd=project)
    assert packaged.returncode == 0, packaged.stdout + packaged.stderr
    with zipfile.ZipFile(project / "shapefix.vsix") as package:
        names = set(package.namelist())
        manifest = json.loads(package.read("extension/package.json"))
    assert {f"extension/{manifest['main'].removeprefix('./')}", "extension/readme.md"} <= {
        name.lower() if name.endswith("README.md") else name for name in names
    }
    assert not any("node_modules" in name or name.endswith(".ts") for name in names)
    assert manifest["version"] == shapefix.__version__
