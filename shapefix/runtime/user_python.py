"""Find the user's interpreter."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path


def find_interpreter(script: Path, environ: Mapping[str, str] = os.environ) -> str:
    """The interpreter for a script: of the active environment, or of a `.venv` or `venv`, or our own.

    A `.venv` or `venv` is searched beside the script, in the current folder, and in its parents up to the top
    of the project.
    """
    for folder in _environments(script, environ):
        python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        if python.exists():
            return str(python)
    return sys.executable


def _environments(script: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if environ.get(name):
            yield Path(environ[name])
    for parent in dict.fromkeys([script.absolute().parent, *project_folders(Path.cwd())]):
        for name in (".venv", "venv"):
            if (parent / name / "pyvenv.cfg").is_file():
                yield parent / name


def project_folders(folder: Path) -> list[Path]:
    """A folder and its parents up to the top of its project; only the folder if there is no project."""
    for place, parent in enumerate((folder, *folder.parents)):
        if any((parent / mark).exists() for mark in (".git", "pyproject.toml")):
            return [folder, *folder.parents][: place + 1]
    return [folder]
