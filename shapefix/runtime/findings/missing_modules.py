"""Modules near the script, but not on the path of imports."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from shapefix.diagnostics import cell_of
from shapefix.runtime.observations import RaisedException

_MISSING = re.compile(r"No module named '(\w+)'$")
_LEVELS, _FOLDERS = 4, 200


def missing_module(failure: RaisedException) -> str:
    """The name of the missing module outside of any package of an exception; empty without one."""
    match = _MISSING.search(failure.message)
    return match[1] if failure.type == "ModuleNotFoundError" and match is not None else ""


def imports_text(failure: RaisedException) -> str:
    """The folder of a missing module, and the variable for it, as text; empty if no folder is certain."""
    name = missing_module(failure)
    if not name or not failure.stack:
        return ""
    cell = cell_of(failure.stack[0].path)
    file = Path(failure.stack[0].path if cell is None else cell[0])
    folder = _folder_of(name, file.parent)
    if folder is None:
        return ""
    shown = min(os.path.relpath(folder), str(folder), key=len)
    return f"; it is in `{shown}`, which is not on the path of imports: set `PYTHONPATH={shown}`"


def _folder_of(name: str, start: Path) -> Path | None:
    """The folder with a module: the nearest around start, else the only one in a folder around start."""
    around = list(_around(start))
    for folder in around:
        if _has_module(folder, name):
            return folder
    found = [each for folder in around for each in _inner(folder) if _has_module(each, name)]
    return found[0] if len(set(found)) == 1 else None


def _around(start: Path) -> Iterator[Path]:
    """A folder and those around it, up to the root of the repository."""
    folder = start.absolute()
    for _ in range(_LEVELS):
        if folder == Path.home() or folder == folder.parent:
            return
        yield folder
        if (folder / ".git").exists():
            return
        folder = folder.parent


def _inner(folder: Path) -> list[Path]:
    try:
        inside = sorted(each for each in folder.iterdir() if each.is_dir() and each.name[0] not in "._")
    except OSError:
        return []
    return inside[:_FOLDERS]


def _has_module(folder: Path, name: str) -> bool:
    """Whether a folder has a module, or a package with modules."""
    try:
        return (folder / f"{name}.py").is_file() or next((folder / name).glob("*.py"), None) is not None
    except OSError:
        return False
