"""Which interpreter is the user's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path


def interpreter(script: Path, environ: Mapping[str, str] = os.environ) -> str:
    """The interpreter that a script is run with when none is named.

    That of the active environment, else of a `.venv` or `venv` beside the script, in the current folder or
    above it as far as its project goes, else our own.
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
    for parent in dict.fromkeys([script.absolute().parent, *_project(Path.cwd())]):
        for name in (".venv", "venv"):
            if (parent / name / "pyvenv.cfg").is_file():
                yield parent / name


def _project(folder: Path) -> list[Path]:
    """A folder and those around it up to the top of its project; the folder alone outside of one."""
    for place, parent in enumerate((folder, *folder.parents)):
        if any((parent / mark).exists() for mark in (".git", "pyproject.toml")):
            return [folder, *folder.parents][: place + 1]
    return [folder]
