"""Redirect Python's own file functions to the probe's disk."""

from __future__ import annotations

import builtins
import functools
import io
import os
import shutil
import urllib.parse
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from . import guard, imports, references
from .disk import Disk

_LARGEST_COPY = 1 << 30


def install(disk: Disk) -> None:
    """Redirect the file functions of the script, including references held by other modules."""
    owners = (builtins, io, os, shutil)
    before = [(owner, name, value) for owner in owners for name, value in vars(owner).items()]
    _open(disk)
    _raw(disk)
    _folders(disk)
    _removals(disk)
    _links(disk)
    kept = functools.partial(disk.writable, keep=True)
    for name in ("stat", "access", "listxattr", "getxattr", "statvfs"):
        _argument(name, disk, disk.readable)
    _argument("chdir", disk, disk.entered)
    for name in ("lstat", "readlink"):
        _argument(name, disk, disk.readable, follow=False)
    for name in ("chmod", "chown", "utime", "truncate", "setxattr", "removexattr", "chflags"):
        _argument(name, disk, kept)
    for name in ("lchmod", "lchown", "lchflags"):
        _argument(name, disk, kept, follow=False)
    for name in ("mkfifo", "mknod"):
        _argument(name, disk, disk.writable, follow=False)
    imports.after({"sqlite3": functools.partial(_databases, disk=disk)})
    # References to `io.FileIO` stay: isinstance checks need them, and the guard sees the files that it opens.
    replaced = {
        id(value): (value, vars(owner)[name])
        for owner, name, value in before
        if vars(owner)[name] is not value and not isinstance(value, type)
    }
    references.replace(list(replaced.values()), __name__.rpartition(".")[0])
    guard.install(disk)


def _open(disk: Disk) -> None:
    original, original_os = io.open, os.open

    @functools.wraps(original)
    def open_file(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if isinstance(file, int):
            return original(file, mode, *args, **kwargs)
        return original(_for_mode(disk, file, mode), mode, *args, **kwargs)

    @functools.wraps(original_os)
    def open_descriptor(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        path = disk.at(path, dir_fd)
        writes = flags & guard.WRITING
        path = disk.writable(path, keep=not flags & os.O_TRUNC) if writes else disk.readable(path)
        return original_os(path, flags, mode, dir_fd=dir_fd)

    builtins.open = io.open = open_file
    os.open = open_descriptor


def _for_mode(disk: Disk, path: Any, mode: str) -> Any:
    if set(mode) & set("wax+"):
        return disk.writable(path, keep="w" not in mode)
    return disk.readable(path)


def _raw(disk: Disk) -> None:
    """Redirect files opened with `io.FileIO` directly."""
    original = io.FileIO

    class Kind(type(original)):  # type: ignore[misc]
        """Accept files from `open` as instances of the replaced class."""

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original) if cls is FileIO else super().__instancecheck__(instance)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, original) if cls is FileIO else super().__subclasscheck__(subclass)

    class FileIO(original, metaclass=Kind):  # type: ignore[misc, valid-type]
        def __init__(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> None:
            super().__init__(
                file if isinstance(file, int) else _for_mode(disk, file, mode), mode, *args, **kwargs
            )

    FileIO.__module__, FileIO.__qualname__ = original.__module__, original.__qualname__
    io.FileIO = FileIO  # type: ignore[misc]


def _argument(name: str, disk: Disk, mapped: Callable[..., Any], **always: bool) -> None:
    """Redirect the path argument of a function of os; file descriptors stay unchanged."""
    original = getattr(os, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def function(path: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(path, int):
            follow = {"follow": kwargs.get("follow_symlinks", True), **always}
            path = mapped(disk.at(path, kwargs.get("dir_fd")), **follow)
        return original(path, *args, **kwargs)

    setattr(os, name, function)


def _links(disk: Disk) -> None:
    symlink, link = os.symlink, os.link

    @functools.wraps(symlink)
    def soft(src: Any, dst: Any, target_is_directory: bool = False, *, dir_fd: int | None = None) -> None:
        symlink(src, disk.linked(disk.at(dst, dir_fd)), target_is_directory)

    @functools.wraps(link)
    def hard(
        src: Any,
        dst: Any,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        source = disk.at(src, src_dir_fd)
        origin, aim = disk.readable(source), disk.writable(disk.at(dst, dst_dir_fd), follow=False)
        if origin is source and disk.ours(source) and os.path.isfile(origin):  # noqa: PTH113
            # A write through the link would change the user's own file.
            if os.path.lexists(aim):
                raise FileExistsError(17, "File exists", os.fspath(src), None, os.fspath(dst))
            shutil.copy2(origin, aim)
            return
        link(origin, aim, follow_symlinks=follow_symlinks)

    os.symlink, os.link = soft, hard


def _databases(module: ModuleType, disk: Disk) -> None:
    """Redirect SQLite databases; large files of the user are opened read-only."""
    original = module.connect

    @functools.wraps(original)
    def connect(database: Any, *args: Any, **kwargs: Any) -> Any:
        path, query = _text(database), ""
        uri = bool(kwargs.get("uri")) and path is not None and path.startswith("file:")
        if path is not None and uri:
            path, _, query = path.removeprefix("file:").partition("?")
            path = path.removeprefix("//localhost")
            path = urllib.parse.unquote(path[2:] if path.startswith("///") else path)
        if not path or path == ":memory:" or "mode=memory" in query or not disk.ours(path):
            return original(database, *args, **kwargs)
        aim = disk.readable(path)
        logged = os.path.exists(aim + "-wal")  # noqa: PTH110
        reads = "mode=ro" in query or "immutable=1" in query
        if aim is path and not logged and (reads or _size(path) > _LARGEST_COPY):
            # Otherwise SQLite may write files next to a database opened read-only.
            query, kwargs["uri"] = "mode=ro&immutable=1", True
        else:
            aim = disk.writable(path, keep=True)
            for suffix in ("-wal", "-journal"):
                if os.path.isfile(path + suffix):  # noqa: PTH113
                    disk.writable(path + suffix, keep=True)
        if kwargs.get("uri"):
            aim = f"file:{urllib.parse.quote(os.path.abspath(aim))}?{query}"  # noqa: PTH100
        return original(aim, *args, **kwargs)

    references.replace([(original, connect)], __name__.rpartition(".")[0])


def _text(database: Any) -> str | None:
    try:
        return os.fsdecode(database)
    except TypeError:
        return None


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return 0


def _folders(disk: Disk) -> None:
    mkdir, listdir, scandir = os.mkdir, os.listdir, os.scandir

    @functools.wraps(mkdir)
    def make(path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        path = disk.at(path, dir_fd)
        if disk.makes_overlay(path):
            return
        if disk.ours(path):
            if os.path.lexists(disk.readable(path)):
                raise FileExistsError(17, "File exists", os.fspath(path))
            path = disk.writable(path)
        mkdir(path, mode, dir_fd=dir_fd)

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
    """The merged entries of several folders: the first of each name, without hidden ones."""

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
        def delete(path: Any, *, dir_fd: int | None = None) -> None:
            path = disk.at(path, dir_fd)
            if original is rmdir and disk.removes_overlay(path):
                return
            if not disk.ours(path, follow=False):
                original(path, dir_fd=dir_fd)
                return
            saved = disk.hide(path)
            if saved is not None and os.path.lexists(saved):
                original(saved)

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

    def move(src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        source, target = disk.at(src, src_dir_fd), disk.at(dst, dst_dir_fd)
        origin = disk.readable(source, follow=False)
        aim = disk.writable(target, follow=False)
        if disk.ours(source, follow=False) and origin is source:
            # The user's file stays in place; only the script sees it at the new path.
            copy = shutil.copytree if os.path.isdir(origin) else shutil.copy2  # noqa: PTH112
            copy(origin, aim)
            disk.hide(source)
            return
        if disk.ours(source, follow=False):
            disk.hide(source)
        rename(origin, aim, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    os.rename = functools.wraps(rename)(move)
    os.replace = functools.wraps(os.replace)(move)
