"""Replace files atomically: readers see the old content or the new one, also after a crash."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from shapefix.repair.attributes import copy_attributes
from shapefix.repair.exchange import Lease, exchange, lock, locked_folder

_DRAFT = re.compile(r"\..+\.([0-9a-f]{16})\.([0-9a-f]{16})\.[0-9a-f]{8}\.shapefix-(new|old)")
_LONGEST_STEM = 100
_STALE_SECONDS = 60
_MOST_EXCHANGES = 100


class LeftAlone(Exception):
    """Nothing was written, for the reason in the message."""


class ChangedOnDisk(LeftAlone):
    """The file has changed since it was read, or is being changed."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(
            f"{path} changed on disk while it was being repaired; it was left alone, run shapefix again"
        )


def write(path: str | Path, data: bytes, expected: bytes) -> None:
    """Replace the content of a file atomically and durably; expected is its current content.

    The file keeps its mode, owner, group, extended attributes and access control list; one that cannot keep
    them is left alone, and so is one with several hard links. A symlink keeps pointing at its target, which
    changes. A failure leaves the file unchanged and removes the draft beside it. A process that is killed
    cannot: it may leave one `.NAME.….shapefix-new` or `-old`, which the next run removes.

    A change by another program is not overwritten: on Linux, the file is leased while it is compared, and
    exchanged with the draft, so that a change up to the last moment is found and put back. Elsewhere, a
    change between the last comparison and the rename, microseconds apart, is lost.

    Raises LeftAlone, and OSError when the file cannot be read or written.
    """
    target = Path(path).resolve(strict=True)
    _require_regular(path, target)
    remove_abandoned([target.parent])
    with target.open("rb") as old:
        state = os.fstat(old.fileno())
        if state.st_nlink > 1:
            raise LeftAlone(f"{path} has {state.st_nlink} hard links, which a repair would separate")
        if lock(old.fileno(), wait=False) is False:
            raise LeftAlone(f"{path} is locked by another program, such as another run of shapefix")
        _require_same(path, target, old, expected)
        stem = f".{target.name[:_LONGEST_STEM]}.{_digest(expected)}.{_digest(data)}.{secrets.token_hex(4)}"
        draft = target.parent / f"{stem}.shapefix-new"
        with locked_folder(target.parent):
            new = _create(draft)
            lock(new.fileno())
        try:
            with new:
                new.write(data)
                new.flush()
                lost = copy_attributes(target, draft)
                if lost is not None:
                    raise LeftAlone(f"{path} would lose its {lost}")
                os.fsync(new.fileno())
                draft = draft.rename(target.parent / f"{stem}.shapefix-old")
                _swap(path, target, draft, old, expected)
        finally:
            draft.unlink(missing_ok=True)
    _settle(target.parent)


def remove_abandoned(folders: Iterable[Path]) -> None:
    """Remove the drafts of killed processes from folders."""
    for folder in folders:
        with contextlib.suppress(OSError):
            names = [name for name in os.listdir(folder) if _DRAFT.fullmatch(name)]  # noqa: PTH208
            if names:
                with locked_folder(folder):
                    for name in names:
                        _remove_abandoned(folder / name)


def _remove_abandoned(draft: Path) -> None:
    named = _DRAFT.fullmatch(draft.name)
    assert named is not None
    with contextlib.suppress(OSError):
        if not stat.S_ISREG(draft.lstat().st_mode):
            return
        with draft.open("rb") as file:
            free = lock(file.fileno(), wait=False)
            if free is None:
                free = time.time() - os.fstat(file.fileno()).st_mtime > _STALE_SECONDS
            # Under its second name, a draft may have been exchanged for what another program has just saved.
            ours = named[3] == "new" or _digest(file.read()) in (named[1], named[2])
        if free and ours:
            draft.unlink()


def _require_regular(path: str | Path, target: Path) -> None:
    state = target.stat()
    if not stat.S_ISREG(state.st_mode):
        raise OSError(f"{path} is not a regular file")
    # Root may write anything; the mode says what the owner wants.
    if not os.access(target, os.W_OK) or not state.st_mode & 0o222:
        raise PermissionError(f"{path} is read-only")


def _require_same(path: str | Path, target: Path, old: BinaryIO, expected: bytes) -> None:
    """Raise ChangedOnDisk unless the open file is still at its path, with its expected content."""
    old.seek(0)
    if not _is_at(target, old) or old.read() != expected:
        raise ChangedOnDisk(path)


def _create(draft: Path) -> BinaryIO:
    return os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _swap(path: str | Path, target: Path, draft: Path, old: BinaryIO, expected: bytes) -> None:
    """Put the draft in place of the target. Raises ChangedOnDisk, and OSError."""
    lease = Lease(old.fileno())
    if lease.has_writer:
        raise ChangedOnDisk(path)
    _require_same(path, target, old, expected)
    placed = draft.stat()
    if not exchange(draft, target):
        draft.replace(target)
        return
    try:
        _require_same(path, draft, old, expected)
        if lease.is_contested():
            raise ChangedOnDisk(path)
    except BaseException:
        _restore(target, draft, placed)
        raise


def _restore(target: Path, draft: Path, placed: os.stat_result) -> None:
    """Put back the latest save of another program; placed is the file at the target now."""
    assert sys.platform == "linux", "only Linux exchanges files"
    with contextlib.ExitStack() as kept_open:
        for _ in range(_MOST_EXCHANGES):
            # The inode number of an open file is not reused by a later save.
            descriptor = os.open(draft, os.O_PATH)
            kept_open.callback(os.close, descriptor)
            saved = os.fstat(descriptor)
            exchange(draft, target)
            if os.path.samestat(draft.stat(), placed):
                return
            placed = saved


def _is_at(path: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _settle(folder: Path) -> None:
    """Sync the folder, so that the rename is durable."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
