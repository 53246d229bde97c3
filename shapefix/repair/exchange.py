"""Exchange two files atomically, notice other writers of a file, and lock files."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_AT_FDCWD = -100
_EXCHANGE = 2


def exchange(one: Path, other: Path) -> bool:
    """Exchange two files; returns False if the system or the file system cannot. Raises OSError."""
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        return False
    if library.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(other))


class Lease:
    """A lease on a file open for reading: other programs can open it for writing once it is closed.

    Linux has leases, on most file systems, for the owner of a file. Elsewhere nothing is noticed.
    """

    def __init__(self, descriptor: int) -> None:
        """Take the lease; has_writer says that a program has the file open for writing."""
        self._descriptor = descriptor
        self._held = False
        self.has_writer = False
        if sys.platform == "linux":
            import fcntl
            import signal

            try:
                # The signal for a waiting program; the default one would end this process.
                fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
                fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
                self._held = True
            except OSError as error:
                self.has_writer = error.errno == errno.EAGAIN

    def is_contested(self) -> bool:
        """Whether a program waits to open the file for writing."""
        if sys.platform == "linux" and self._held:
            import fcntl

            return fcntl.fcntl(self._descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK
        return False


def lock(descriptor: int, wait: bool = True) -> bool | None:
    """Lock an open file until it is closed, or its process ends.

    Returns False if another process has locked it, and None if the file system has no locks.
    """
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Keep other processes out of the block for the same folder, if the file system has locks."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        lock(descriptor)
        yield
    finally:
        os.close(descriptor)
