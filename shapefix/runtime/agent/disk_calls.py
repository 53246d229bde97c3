"""Has Python's own functions for files go through the probe's disk."""

from __future__ import annotations

import builtins
import functools
import io
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

from .disk import Disk


def install(disk: Disk) -> None:
    """Map the files of the script from now on."""
    _open(disk)
    _folders(disk)
    _removals(disk)
    for name in ("stat", "lstat", "access", "readlink", "chdir", "listxattr", "getxattr"):
        _argument(name, 0, disk.readable)
    for name in ("chmod", "chown", "utime", "truncate", "setxattr"):
        _argument(name, 0, functools.partial(disk.writable, keep=True))
    for name in ("symlink", "link"):
        _argument(name, 1, disk.writable)


def _open(disk: Disk) -> None:
    original, original_os = io.open, os.open

    @functools.wraps(original)
    def open_file(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if isinstance(file, int):
            return original(file, mode, *args, **kwargs)
        if set(mode) & set("wax+"):
            file = disk.writable(file, keep="w" not in mode)
        else:
            file = disk.readable(file)
        return original(file, mode, *args, **kwargs)

    @functools.wraps(original_os)
    def open_descriptor(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if kwargs.get("dir_fd") is None:
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC)
            path = disk.writable(path, keep=not flags & os.O_TRUNC) if writes else disk.readable(path)
        return original_os(path, flags, *args, **kwargs)

    builtins.open = io.open = open_file
    os.open = open_descriptor


def _argument(name: str, position: int, mapped: Callable[[Any], Any]) -> None:
    """Map an argument of a function of os, where it is no descriptor and relative to none."""
    original = getattr(os, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) > position and kwargs.get("dir_fd") is None and not isinstance(args[position], int):
            args = (*args[:position], mapped(args[position]), *args[position + 1 :])
        return original(*args, **kwargs)

    setattr(os, name, function)


def _folders(disk: Disk) -> None:
    mkdir, listdir, scandir = os.mkdir, os.listdir, os.scandir

    @functools.wraps(mkdir)
    def make(path: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("dir_fd") is None and disk.ours(path):
            if os.path.lexists(disk.readable(path)):
                raise FileExistsError(17, "File exists", os.fspath(path))
            path = disk.writable(path)
        mkdir(path, *args, **kwargs)

    @functools.wraps(listdir)
    def names(path: Any = ".") -> list[Any]:
        if isinstance(path, int):
            return listdir(path)
        found: dict[Any, None] = {}
        for part in disk.parts(path):
            found.update(dict.fromkeys(listdir(part)))
        return [name for name in found if not disk.hides(path, os.fsdecode(name))]

    @functools.wraps(scandir)
    def entries(path: Any = ".") -> Any:
        if isinstance(path, int) or not disk.ours(path):
            return scandir(path)
        parts = [scandir(part) for part in disk.parts(path)]
        return _Entries(parts, lambda name: disk.hides(path, os.fsdecode(name)))

    os.mkdir, os.listdir, os.scandir = make, names, entries


class _Entries:
    """The entries of several folders as those of one: of each name the first, and none that are hidden."""

    def __init__(self, parts: list[Any], hidden: Callable[[Any], bool]) -> None:
        self._parts = parts
        self._hidden = hidden
        self._entries = self._each()

    def _each(self) -> Iterator[Any]:
        seen = set()
        for part in self._parts:
            for entry in part:
                if entry.name not in seen and not self._hidden(entry.name):
                    seen.add(entry.name)
                    yield entry

    def __iter__(self) -> _Entries:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        for part in self._parts:
            part.close()


def _removals(disk: Disk) -> None:
    remove, rmdir, rename, rmtree = os.remove, os.rmdir, os.rename, shutil.rmtree

    def deleting(original: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(original)
        def delete(path: Any, *args: Any, **kwargs: Any) -> None:
            # Relative to a descriptor: of a saved folder, as rmtree of a real one never comes so far.
            if kwargs.get("dir_fd") is not None or not disk.ours(path):
                original(path, *args, **kwargs)
                return
            saved = disk.hide(path)
            if saved is not None and os.path.lexists(saved):
                original(saved, *args, **kwargs)

        return delete

    os.remove, os.rmdir = deleting(remove), deleting(rmdir)
    os.unlink = os.remove

    @functools.wraps(rmtree)
    def remove_tree(path: Any, ignore_errors: bool = False, *args: Any, **kwargs: Any) -> None:
        if not disk.ours(path):
            rmtree(path, ignore_errors, *args, **kwargs)
            return
        try:
            saved = disk.hide(path)
        except FileNotFoundError:
            if ignore_errors:
                return
            raise
        if saved is not None and os.path.isdir(saved):  # noqa: PTH112
            rmtree(saved, ignore_errors, *args, **kwargs)

    shutil.rmtree = remove_tree  # type: ignore[assignment]

    def move(source: Any, target: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("src_dir_fd") is not None or not (disk.ours(source) or disk.ours(target)):
            rename(source, target, *args, **kwargs)
            return
        origin = disk.readable(source)
        aim = disk.writable(target)
        if disk.ours(source) and origin is source:
            # A real file stays where it is; the script sees it at its new place only.
            copy = shutil.copytree if os.path.isdir(origin) else shutil.copy2  # noqa: PTH112
            copy(origin, aim)
            disk.hide(source)
            return
        if disk.ours(source):
            disk.hide(source)
        rename(origin, aim, *args, **kwargs)

    os.rename = functools.wraps(rename)(move)  # type: ignore[assignment]
    os.replace = functools.wraps(os.replace)(move)  # type: ignore[assignment]
