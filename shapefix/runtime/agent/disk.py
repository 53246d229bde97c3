"""Where the script's writes go: into a folder of the probe, from which the script reads them back.

The working tree stays as it is. What a script opens for writing through Python is mapped to the same path
below the probe's folder; reading looks there first. What it deletes is only hidden from it. Caches (of
downloads, above all) are used as they are, so that nothing is fetched twice.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from ..protocol import FileWrittenLine
from .session import Session

_mkdirs, _lexists, _isdir, _realpath = os.makedirs, os.path.lexists, os.path.isdir, os.path.realpath
_copy = shutil.copy2
_stat = os.stat
_TOLD = 100


class Disk:
    """The folder that writes go to, and what the script has done to the paths it knows."""

    def __init__(self, session: Session, folder: str) -> None:
        self._session = session
        self._folder = _realpath(folder)
        self._saves = os.path.join(self._folder, "saves")  # noqa: PTH118
        self._free = tuple(os.path.join(path, "") for path in (self._folder, *_caches()))  # noqa: PTH118
        self._gone: set[str] = set()
        self._told: set[str] = set()

    def writable(self, path: Any, *, keep: bool = False) -> Any:
        """The path to write to instead of path; with keep, what is there now is there, too."""
        full = self._ours(path)
        if full is None:
            return path
        target = self._saved(full)
        parent = os.path.dirname(full)  # noqa: PTH120
        if self._exists(parent):
            _mkdirs_quietly(os.path.dirname(target))  # noqa: PTH120
        if keep and not _lexists(target) and not self._hidden(full):
            if _isdir(full):
                _mkdirs_quietly(target)
            elif _really(full):
                _copy(full, target)
        if self._session.watches() and full not in self._told and len(self._told) < _TOLD:
            self._told.add(full)
            self._session.sink.write(FileWrittenLine(kind="file_written", path=full))
        return target

    def readable(self, path: Any) -> Any:
        """The path to read from instead of path."""
        full = self._ours(path)
        if full is None:
            return path
        saved = self._saved(full)
        return saved if _lexists(saved) or self._hidden(full) else path

    def parts(self, path: Any) -> list[Any]:
        """The folders that a listing of path is made of."""
        full = self._ours(path)
        if full is None:
            return [path]
        saved = self._saved(full)
        if not _isdir(saved):
            return [saved if self._hidden(full) else path]
        return [saved] if self._hidden(full) or not _really(full) else [saved, path]

    def hides(self, folder: Any, name: str) -> bool:
        """Whether the script has deleted a name of a folder."""
        full = self._ours(os.path.join(os.fspath(folder), name))  # noqa: PTH118
        return full is not None and full in self._gone and not _lexists(self._saved(full))

    def hide(self, path: Any) -> str | None:
        """Let path be gone for the script; returns where a saved version of it stands, to be deleted.

        None where path is not looked after. Raises FileNotFoundError where there is nothing.
        """
        full = self._ours(path)
        if full is None:
            return None
        if not self._exists(full):
            raise FileNotFoundError(2, "No such file or directory", os.fspath(path))
        self._gone.add(full)
        return self._saved(full)

    def ours(self, path: Any) -> bool:
        """Whether writes to path are mapped."""
        return self._ours(path) is not None

    def _ours(self, path: Any) -> str | None:
        if isinstance(path, int):
            return None
        try:
            text = os.fsdecode(path)
            full = os.path.normpath(os.path.join(os.getcwd(), text))  # noqa: PTH109, PTH118
        except (TypeError, ValueError, OSError):
            return None
        if full.startswith(("/dev/", "/proc/", "/sys/", *self._free)) or "\0" in full:
            return None
        return full

    def _saved(self, full: str) -> str:
        return self._saves + os.sep + os.path.splitdrive(full)[1].lstrip(os.sep)

    def _hidden(self, full: str) -> bool:
        if not self._gone:
            return False
        while True:
            if full in self._gone:
                return True
            parent = os.path.dirname(full)  # noqa: PTH120
            if parent == full:
                return False
            full = parent

    def _exists(self, full: str) -> bool:
        if _lexists(self._saved(full)):
            return True
        return not self._hidden(full) and _really(full)


def _really(path: str) -> bool:
    try:
        _stat(path)
    except (OSError, ValueError):
        return False
    return True


def _mkdirs_quietly(path: str) -> None:
    _mkdirs(path, exist_ok=True)


def _caches() -> list[str]:
    home = os.path.expanduser("~")  # noqa: PTH111
    named = (
        "XDG_CACHE_HOME",
        "HF_HOME",
        "HF_HUB_CACHE",
        "HF_DATASETS_CACHE",
        "TORCH_HOME",
        "TRITON_CACHE_DIR",
    )
    found = [os.environ[name] for name in named if os.environ.get(name)]
    found += [os.path.join(home, each) for each in (".cache", ".triton", ".nv", ".keras")]  # noqa: PTH118
    return [_realpath(each) for each in (*found, sys.prefix)]
