"""Block changes of the user's files by calls without redirection.

Python raises an audit event for each file that it opens, moves or deletes, even if C code does it, or a
reference to `open` that was not replaced. A blocked call fails like on a read-only disk.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .disk import Disk

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC

_REASON = "the probe cannot redirect this write to its temporary folder, and does not allow it"


def install(disk: Disk) -> None:
    """Add the audit hook; it stays until the process ends."""
    contents: dict[str, Callable[..., Iterable[Any]]] = {
        "open": _opened,
        "sqlite3.connect": _connected,
        "socket.bind": _bound,
        "os.truncate": lambda path, length: [path],
    }
    # These events concern the link itself; redirected functions have already followed links if needed.
    names: dict[str, Callable[..., Iterable[Any]]] = {
        "os.symlink": lambda source, target, at=-1: [disk.at(target, at)],
        **dict.fromkeys(
            ("os.rename", "os.link"),
            lambda source, target, at=-1, to=-1: [disk.at(source, at), disk.at(target, to)],
        ),
        # The descriptor of the folder that a path is relative to comes last.
        **dict.fromkeys(
            ("os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.chown", "os.utime"),
            lambda path, *rest: [disk.at(path, rest[-1])],
        ),
        **dict.fromkeys(("os.setxattr", "os.removexattr", "os.chflags"), lambda path, *rest: [path]),
    }
    events = {name: (paths, True) for name, paths in contents.items()}
    events |= {name: (paths, False) for name, paths in names.items()}
    find = events.get

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        found = find(event)
        if found is None:
            return
        paths, follow = found
        for path in paths(*arguments):
            if disk.touches(path, follow=follow):
                disk.refuse(path)
                raise OSError(errno.EROFS, _REASON, path)

    sys.addaudithook(watch)


def _opened(path: Any, mode: str | None, flags: int) -> Iterator[Any]:
    if flags & WRITING and not isinstance(path, int):
        yield path


def _connected(database: Any) -> Iterator[Any]:
    try:
        text = os.fsdecode(database)
    except TypeError:
        return
    if text.startswith("file:"):
        text, _, query = text.removeprefix("file:").partition("?")
        if "mode=ro" in query or "mode=memory" in query or "immutable=1" in query:
            return
    if text and text != ":memory:":
        yield text


def _bound(socket: Any, address: Any) -> Iterator[Any]:
    # A socket name that is empty or begins with a zero byte does not name a file.
    if isinstance(address, (str, bytes)) and address and os.fsdecode(address)[0] != "\0":
        yield address
