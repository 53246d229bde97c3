"""Keep the working tree unchanged with the help of the system, for native code and child processes, too.

An overlay mount makes the tree copy-on-write: all writes go to a folder of the probe. It needs a mount
namespace. Without one, Landlock makes writes to the tree fail. Both are features of Linux and last as long as
the process and its children.

This module imports the standard library only, and also runs as a script, before torchrun starts the ranks.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import stat
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

_NEW_MOUNTS, _NEW_USER = 0x0002_0000, 0x1000_0000
_RDONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
_NO_NEW_PRIVILEGES = 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_MOST_SIBLINGS = 50_000

# The rights to change files in Landlock: of its first version, its second (REFER), and its third (TRUNCATE).
_WRITE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
_WRITES = _WRITE_FILE | sum(1 << bit for bit in range(4, 13))


NONE: dict[str, Any] = {"method": "none", "layers": [], "reason": None}


def protect(path: str) -> dict[str, Any]:
    """Protect the tree by the plan in a file, once for all processes of a run; returns the result.

    The result has the method (overlay, landlock, or none), the protected folders, each with the folder of the
    writes to it for an overlay, and the reason for not using a better method.
    """
    done = path + ".done"
    try:
        with open(done, encoding="utf-8") as file:  # noqa: PTH123
            result: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            result = _enter(json.load(file))
        with open(done, "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(result, file)
    return result


def _enter(plan: Mapping[str, Any]) -> dict[str, Any]:
    reasons = []
    methods: tuple[tuple[str, Callable[[Mapping[str, Any]], Any]], ...] = (
        ("overlay", _overlay),
        ("landlock", _landlock),
    )
    for method, enter in methods:
        if method not in plan["methods"] or not plan["roots"]:
            continue
        try:
            layers = enter(plan)
        except (OSError, AttributeError) as error:
            reasons.append(f"{method}: {getattr(error, 'strerror', None) or error}")
        else:
            return {"method": method, "layers": layers, "reason": "; ".join(reasons) or None}
    reason = "; ".join(reasons) or (None if plan["roots"] else "no project folder")
    return {"method": "none", "layers": [], "reason": reason}


# Overlay mounts


def _overlay(plan: Mapping[str, Any]) -> list[list[str]]:
    """Mount an overlay on each root; returns the roots, each with the folder of its writes.

    Raises OSError.
    """
    if plan["layers"] is None:
        raise OSError("no folder for the writes outside of the working tree")
    new_user = not _may_mount()
    if new_user and plan["foreign"]:
        # A namespace has one user and group; the kernel refuses to copy the files of others.
        raise OSError(f"{plan['foreign']} has another owner or group")
    # A namespace cannot be left: a child tries first.
    child = os.fork()
    if child == 0:
        code = 126
        try:
            layers = _mount(plan, os.path.join(plan["layers"], "try"), new_user)  # noqa: PTH118
            code = 0 if all(_redirects(root, upper) for root, upper in layers) else 126
        except OSError as error:
            code = min(error.errno or 126, 126)
        except BaseException:
            code = 126
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError("the mount does not work" if code == 126 else os.strerror(code))
    layers = _mount(plan, os.path.join(plan["layers"], "of"), new_user)  # noqa: PTH118
    if new_user:
        _drop_capabilities()
    return [[root, upper] for root, upper in layers]


def _redirects(root: str, upper: str) -> bool:
    """Whether a new file in root appears in upper."""
    name = ".shapefix-probe"
    if not os.access(root, os.W_OK):
        return True
    os.close(os.open(os.path.join(root, name), os.O_WRONLY | os.O_CREAT, 0o600))  # noqa: PTH118
    return os.path.exists(os.path.join(upper, name))  # noqa: PTH110, PTH118


def _may_mount() -> bool:
    """Whether this process may mount without a user namespace."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123
        effective = next((line.split()[1] for line in file if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> 21 & 1)


def _mount(plan: Mapping[str, Any], folder: str, new_user: bool) -> list[tuple[str, str]]:
    """Mount all overlays in new namespaces; folder is for their layers. Raises OSError."""
    cwd, user, group = os.getcwd(), os.geteuid(), os.getegid()  # noqa: PTH109
    with open("/proc/self/uid_map", encoding="ascii") as file:  # noqa: PTH123
        initial = not new_user and file.read().split() == ["0", "0", "4294967295"]
    _call("unshare", _NEW_MOUNTS | (_NEW_USER if new_user else 0))
    if new_user:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123
                file.write(text)
    _call("mount", None, b"/", None, _RECURSIVE | _PRIVATE, None)
    opened: list[int] = []
    try:
        # All folders are opened first: the mounts hide them.
        kept = [(path, _open(path, opened)) for path in plan["kept"]]
        roots = plan["roots"]
        points = [(point, _open(point, opened)) for root in roots for point in (root, *_mounts_in(root))]
        layers = []
        for number, (point, lower) in enumerate(points):
            upper = f"{folder}{number}"
            try:
                _mount_overlay(point, lower, upper, initial, opened)
            except OSError:
                if point in roots:
                    raise
                _mount_read_only(point, lower)
            else:
                layers.append((point, upper))
        for path, descriptor in kept:
            _call(
                "mount",
                f"/proc/self/fd/{descriptor}".encode(),
                os.fsencode(path),
                None,
                _BIND | _RECURSIVE,
                None,
            )
    finally:
        for descriptor in opened:
            os.close(descriptor)
    os.chdir(cwd)  # into the overlay
    return layers


def _mount_overlay(point: str, lower: int, upper: str, initial: bool, opened: list[int]) -> None:
    """Mount an overlay on a folder; lower is its descriptor. Raises OSError."""
    work = upper + ".work"
    os.mkdir(upper)  # noqa: PTH102
    os.mkdir(work)  # noqa: PTH102
    _copy_owner(os.fstat(lower), upper)
    # Paths by descriptor need no quoting, and are short.
    layers = {"lowerdir": lower, "upperdir": _open(upper, opened), "workdir": _open(work, opened)}
    options = ",".join(f"{name}=/proc/self/fd/{descriptor}" for name, descriptor in layers.items())
    options += "" if initial else ",userxattr"
    _call("mount", b"shapefix", os.fsencode(point), b"overlay", 0, options.encode())


def _mount_read_only(point: str, lower: int) -> None:
    """Mount another file system of the tree again, for reading only. Raises OSError."""
    _call("mount", f"/proc/self/fd/{lower}".encode(), os.fsencode(point), None, _BIND, None)
    _call("mount", None, os.fsencode(point), None, _BIND | _REMOUNT | _RDONLY, None)


def _copy_owner(state: os.stat_result, upper: str) -> None:
    """Give the folder of the writes the mode and owner of the original: the kernel shows those."""
    with contextlib.suppress(OSError):  # then it is the user's
        os.chown(upper, state.st_uid, state.st_gid)
    os.chmod(upper, stat.S_IMODE(state.st_mode))  # noqa: PTH101
    os.utime(upper, ns=(state.st_atime_ns, state.st_mtime_ns))


def _mounts_in(root: str) -> list[str]:
    """The mount points below a folder, outer ones first."""
    found = set()
    with open("/proc/self/mountinfo", "rb") as file:  # noqa: PTH123
        for line in file:
            # Spaces and backslashes are octal escapes.
            path = os.fsdecode(line.split()[4].decode("unicode_escape").encode("latin-1"))
            if path.startswith(os.path.join(root, "")):  # noqa: PTH118
                found.add(path)
    return sorted(found, key=lambda path: path.count(os.sep))


def _drop_capabilities() -> None:
    """Give up the rights of the new namespace: file modes then apply as usual."""
    header = ctypes.create_string_buffer(struct.pack("=Ii", 0x2008_0522, 0))
    _call("capset", header, ctypes.create_string_buffer(24))


# Landlock


def _landlock(plan: Mapping[str, Any]) -> list[list[str]]:
    """Make writes to the roots fail, for this process and its children. Raises OSError."""
    version = _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 2:
        raise OSError("too old: it would refuse to move files between any folders")
    rights = _WRITES | _REFER | (_TRUNCATE if version >= 3 else 0)
    attribute = struct.pack("=Q", rights)
    ruleset = _syscall(_CREATE_RULESET, attribute, ctypes.c_size_t(len(attribute)), 0)
    try:
        for path in dict.fromkeys((*_around(plan["roots"]), *plan["kept"], *plan["open"])):
            _allow(ruleset, path, rights)
        _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return [[root, ""] for root in plan["roots"]]


def _around(roots: Sequence[str]) -> Iterator[str]:
    """The entries of all folders above the roots, without the roots and those folders."""
    above = {"/"}
    for root in roots:
        while root != "/":
            root = os.path.dirname(root)  # noqa: PTH120
            above.add(root)
    for folder in above - set(roots):
        try:
            names = os.listdir(folder)[:_MOST_SIBLINGS]  # noqa: PTH208
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118
            if path not in above and path not in roots:
                yield path


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return  # gone, or not accessible: then it cannot be written either
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISLNK(mode):
            return
        if not stat.S_ISDIR(mode):
            rights &= _WRITE_FILE | _TRUNCATE
        rule = struct.pack("=Qi", rights, descriptor)
        _syscall(_ADD_RULE, ruleset, 1, rule, 0)
    finally:
        os.close(descriptor)


# Calls of the C library


def _open(path: str, opened: list[int]) -> int:
    opened.append(os.open(path, os.O_PATH | os.O_CLOEXEC))
    return opened[-1]


def _call(name: str, *arguments: Any) -> int:
    """Call a function of the C library. Raises OSError, and AttributeError if there is no such function."""
    library = ctypes.CDLL(None, use_errno=True)
    result: int = getattr(library, name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def _syscall(number: int, *arguments: Any) -> int:
    return _call("syscall", ctypes.c_long(number), *arguments)


def _run(arguments: list[str]) -> None:
    """Protect the tree by the plan in the first argument, and become the command in the others."""
    protect(arguments[0])
    os.execvp(arguments[1], arguments[1:])


if __name__ == "__main__":
    _run(sys.argv[1:])
