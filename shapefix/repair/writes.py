"""Replace files atomically: readers see the old content or the new one, also after a crash."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from pathlib import Path

_SUFFIX = ".shapefix-new"
_STALE_SECONDS = 60


class ChangedOnDisk(Exception):
    """The file has changed since it was read; nothing was written."""


def write(path: str | Path, data: bytes, expected: bytes) -> None:
    """Replace the content of a file atomically and durably; expected is its current content.

    The file keeps its mode and, where permitted, its owner and group; a symlink keeps pointing at its
    target, which changes; another hard link to the file keeps the old content. A failure leaves the file
    unchanged and removes the temporary file beside it. A process that is killed cannot: it may
    leave one `.NAME.….shapefix-new`, which a later write to the same file removes once it is a minute old.

    Raises ChangedOnDisk when the file does not hold expected, and OSError when it cannot be read or written.
    """
    target = Path(path).resolve(strict=True)
    status = target.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{path} is not a regular file")
    if not os.access(target, os.W_OK):
        raise PermissionError(f"{path} is read-only")
    _remove_stale(target)
    _demand(path, target, expected)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=_SUFFIX, dir=target.parent)
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            _keep_owner(fresh, status)
            fresh.chmod(stat.S_IMODE(status.st_mode))  # after the owner, whose change clears the set-id bits
            os.fsync(file.fileno())
        _demand(path, target, expected)
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    _settle(target.parent)


def _demand(path: str | Path, target: Path, expected: bytes) -> None:
    if target.read_bytes() != expected:
        raise ChangedOnDisk(
            f"{path} changed on disk while it was being repaired; it was left alone, run shapefix again"
        )


def _keep_owner(fresh: Path, status: os.stat_result) -> None:
    if hasattr(os, "chown"):
        with contextlib.suppress(PermissionError):
            os.chown(fresh, -1, status.st_gid)
            os.chown(fresh, status.st_uid, -1)


def _remove_stale(target: Path) -> None:
    """Remove old temporary files of killed processes beside this file."""
    with contextlib.suppress(OSError):
        for left in target.parent.iterdir():
            if left.name.startswith(f".{target.name}.") and left.name.endswith(_SUFFIX):
                with contextlib.suppress(OSError):
                    if time.time() - left.stat().st_mtime > _STALE_SECONDS:
                        left.unlink()


def _settle(folder: Path) -> None:
    """Sync the folder, so that the rename is durable."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
