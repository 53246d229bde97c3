"""Redirect the script's writes to a folder of the probe; the script can read them back from there.

The working tree does not change. A file that the script opens for writing is mapped to the same path below
the probe's folder; reading looks there first. Deleted files are only hidden from the script. Caches, mostly
of downloads, are used directly, so that nothing is fetched twice; the folders that the script runs in are
never treated as caches. Folders below an overlay mount need no mapping.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..protocol import FileWrittenLine, WriteRefusedLine
from .session import Session

_mkdirs, _lexists, _isdir, _realpath = os.makedirs, os.path.lexists, os.path.isdir, os.path.realpath
_copy = shutil.copy2
_stat, _readlink, _listdir = os.stat, os.readlink, os.listdir
_TOLD = 100
_KERNEL = ("/dev/", "/proc/", "/sys/")
_MOST_LINKS = 40


class Disk:
    """The folder for redirected writes, and the paths deleted or written by the script."""

    def __init__(
        self, session: Session, folder: str, roots: Sequence[str] = (), overlays: Sequence[str] = ()
    ) -> None:
        """Redirect writes to folder, also from roots inside a cache, but not from overlays."""
        self._session = session
        self._folder = _realpath(folder)
        self._saves = os.path.join(self._folder, "saves")  # noqa: PTH118
        self._own = os.path.join(self._folder, "")  # noqa: PTH118
        caches = (*map(_realpath, cache_folders(os.environ)), _realpath(sys.prefix))
        self._caches = tuple(os.path.join(path, "") for path in caches)  # noqa: PTH118
        self._overlays = tuple(os.path.join(path, "") for path in overlays)  # noqa: PTH118
        self._roots = tuple(os.path.join(_realpath(path), "") for path in roots)  # noqa: PTH118
        self._gone: set[str] = set()
        self._removed_overlays: set[str] = set()
        self._told: set[str] = set()
        self._refused: set[str] = set()
        self._links = False

    def writable(self, path: Any, *, keep: bool = False, follow: bool = True) -> Any:
        """The path to write to instead of path; with keep, the current content is copied there."""
        full = self._ours(path, follow)
        if full is None:
            return path
        target = self._saved(full)
        parent = os.path.dirname(full)  # noqa: PTH120
        if self._exists(parent):
            _mkdirs_quietly(os.path.dirname(target))  # noqa: PTH120
        if keep and not _lexists(target) and not self._hidden(full):
            if _isdir(full):
                _mkdirs_quietly(target)
            elif _is_file(full):
                _copy(full, target)
        if self._session.watches() and full not in self._told and len(self._told) < _TOLD:
            self._told.add(full)
            self._session.sink.write(FileWrittenLine(kind="file_written", path=full, before=_state(full)))
        return target

    def linked(self, path: Any) -> Any:
        """The path to make a link at instead of path; from now on, links are followed by the disk itself."""
        target = self.writable(path, follow=False)
        self._links = True
        return target

    def readable(self, path: Any, *, follow: bool = True) -> Any:
        """The path to read from instead of path."""
        full = self._ours(path, follow)
        if full is None:
            return path
        saved = self._saved(full)
        return saved if _lexists(saved) or self._hidden(full) else path

    def entered(self, path: Any, *, follow: bool = True) -> Any:
        """The folder to change to instead of path: the real one if it exists, also for native code."""
        full = self._ours(path, follow)
        return path if full is not None and _isdir(full) and not self._hidden(full) else self.readable(path)

    def parts(self, path: Any) -> list[Any]:
        """The folders combined in a listing of path."""
        full = self._ours(path)
        if full is None:
            return [path]
        saved = self._saved(full)
        if not _isdir(saved):
            return [saved if self._hidden(full) else path]
        return [saved] if self._hidden(full) or not _really(full) else [saved, path]

    def hides(self, folder: Any, name: str) -> bool:
        """Whether the script has deleted a name of a folder."""
        full = self._ours(os.path.join(os.fspath(folder), name), follow=False)  # noqa: PTH118
        return full is not None and full in self._gone and not _lexists(self._saved(full))

    def hide(self, path: Any) -> str | None:
        """Hide path from the script; returns the saved version of it, for the caller to delete.

        None if path is not redirected. Raises FileNotFoundError if it does not exist.
        """
        full = self._ours(path, follow=False)
        if full is None:
            return None
        if not self._exists(full):
            raise FileNotFoundError(2, "No such file or directory", os.fspath(path))
        self._gone.add(full)
        return self._saved(full)

    def removes_overlay(self, path: Any) -> bool:
        """Note the absence of an empty overlay; returns whether path is one. The system cannot remove it."""
        full = self._overlay(path)
        if full is None or _listdir(full):
            return False
        self._removed_overlays.add(full)
        return True

    def makes_overlay(self, path: Any) -> bool:
        """Whether path is an overlay removed by the script: it may create it again."""
        full = self._overlay(path)
        if full not in self._removed_overlays:
            return False
        self._removed_overlays.discard(full)
        return True

    def _overlay(self, path: Any) -> str | None:
        try:
            full = _realpath(os.fsdecode(path))
        except (TypeError, ValueError, OSError):
            return None
        return full if f"{full}{os.sep}" in self._overlays else None

    def ours(self, path: Any, *, follow: bool = True) -> bool:
        """Whether writes to path are mapped."""
        return self._ours(path, follow) is not None

    def touches(self, path: Any, *, follow: bool = True) -> bool:
        """Whether a write to path, as it is, would change the user's files: by its name, or by its links."""
        if self._ours(path, follow) is not None:
            return True
        try:
            text = _descriptor(path) if isinstance(path, int) else os.fsdecode(path)
            real = _followed(os.path.abspath(text), _link, follow)  # noqa: PTH100
        except (TypeError, ValueError, OSError):
            return False
        return real.startswith(self._roots) and not self._is_free(real)

    def refuse(self, path: Any) -> None:
        """Note a write to path as not allowed."""
        text = os.fsdecode(_descriptor(path) if isinstance(path, int) else path)
        full = os.path.abspath(text)  # noqa: PTH100
        if full not in self._refused and len(self._refused) < _TOLD:
            self._refused.add(full)
            self._session.sink.write(WriteRefusedLine(kind="write_refused", path=full))

    def at(self, path: Any, descriptor: Any) -> Any:
        """The full path of a path relative to a folder's descriptor, if the system knows the folder."""
        if descriptor is None or descriptor == -1 or isinstance(path, int):
            return path
        try:
            # The script's descriptor may be of the saved version of a folder.
            folder = _descriptor(descriptor)
            if folder == self._saves or folder.startswith(self._saves + os.sep):
                folder = os.sep + folder[len(self._saves) :].lstrip(os.sep)
            return os.path.join(folder, os.fsdecode(path))  # noqa: PTH118
        except (TypeError, ValueError, OSError):
            return path

    def _ours(self, path: Any, follow: bool = True) -> str | None:
        """The full path of a redirected file, None for any other; follow resolves links."""
        if isinstance(path, int):
            return None
        try:
            text = os.fsdecode(path)
            full = os.path.normpath(os.path.join(os.getcwd(), text))  # noqa: PTH109, PTH118
        except (TypeError, ValueError, OSError):
            return None
        if "\0" in full:
            return None
        if self._links:
            full = _followed(full, self._saved_link, follow)
        if self._overlays:
            # A link in an overlay may lead out of it.
            full = _followed(full, _link, follow)
        if full.startswith(("/dev/", "/proc/")):
            # /proc/self/cwd and /dev/fd lead anywhere.
            full = _followed(full, _link)
        return None if self._is_free(full) else full

    def _is_free(self, full: str) -> bool:
        if f"{full}{os.sep}".startswith((self._own, *_KERNEL, *self._overlays)):
            return True
        below = next((root for root in self._roots if full.startswith(root)), None)
        return any(full.startswith(c) and not (below and below.startswith(c)) for c in self._caches)

    def _saved_link(self, path: str) -> str | None:
        """Target of a link created by the script."""
        return _link(path if path.startswith(self._own) else self._saved(path))

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


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(_stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _state(path: str) -> list[int] | None:
    """The size, time and number of a file; empty if it is not a regular file, None if it does not exist."""
    try:
        found = _stat(path)
    except (OSError, ValueError):
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ino] if stat.S_ISREG(found.st_mode) else []


def _link(path: str) -> str | None:
    try:
        return _readlink(path)
    except (OSError, ValueError):
        return None


def _followed(path: str, aim_of: Callable[[str], str | None], last: bool = True) -> str:
    """A normalized path without links; with last, its last name is followed, too.

    Without `os.path.realpath`, which calls the functions of os that the disk has replaced.
    """
    for _ in range(_MOST_LINKS):
        names = path.split(os.sep)  # noqa: PTH206
        for n in range(1, len(names) + (1 if last else 0)):
            known = os.sep.join(names[:n]) or os.sep  # noqa: PTH118
            aim = aim_of(known)
            if aim is not None:
                path = os.path.normpath(os.path.join(os.path.dirname(known), aim, *names[n:]))  # noqa: PTH118, PTH120
                break
        else:
            return path
    return path


def _descriptor(number: int) -> str:
    """The path of a descriptor. Raises OSError if the system does not report it."""
    if sys.platform == "darwin":
        import fcntl

        return os.fsdecode(fcntl.fcntl(number, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    path = _readlink(f"/proc/self/fd/{number}")
    if not path.startswith(os.sep):
        raise OSError(f"{path} is not a path")
    return path


def _mkdirs_quietly(path: str) -> None:
    _mkdirs(path, exist_ok=True)


def cache_folders(environ: Mapping[str, str]) -> list[str]:
    """The folders of caches shared between projects."""
    home = os.path.expanduser("~")  # noqa: PTH111
    named = (
        "XDG_CACHE_HOME",
        "HF_HOME",
        "HF_HUB_CACHE",
        "HF_DATASETS_CACHE",
        "TORCH_HOME",
        "TRITON_CACHE_DIR",
    )
    found = [environ[name] for name in named if environ.get(name)]
    return found + [os.path.join(home, each) for each in (".cache", ".triton", ".nv", ".keras")]  # noqa: PTH118
