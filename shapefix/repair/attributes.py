"""Give a new file the owner, mode, access control list and extended attributes of another one."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import sys
from pathlib import Path

# Computed from the content by the kernel.
_DERIVED = ("security.evm", "security.ima")
_COPY_LIST, _COPY_ATTRIBUTES = 1 << 0, 1 << 2


def copy_attributes(source: Path, target: Path) -> str | None:
    """Copy the attributes as far as permitted; returns a noun for the first lost one, if any."""
    state = source.stat()
    if sys.platform == "win32":
        target.chmod(stat.S_IMODE(state.st_mode))
        return None
    for owner in ((-1, state.st_gid), (state.st_uid, -1)):
        with contextlib.suppress(OSError):
            os.chown(target, *owner)
    lost = None
    if sys.platform == "darwin":
        copied = ctypes.CDLL(None).copyfile(
            os.fsencode(source), os.fsencode(target), None, _COPY_LIST | _COPY_ATTRIBUTES
        )
        lost = None if copied == 0 else "extended attributes"
    elif sys.platform == "linux":
        lost = _copy_extended(source, target)
    target.chmod(stat.S_IMODE(state.st_mode))  # after the owner, whose change clears the set-id bits
    new = target.stat()
    if new.st_uid != state.st_uid:
        return "owner"
    if new.st_gid != state.st_gid:
        return "group"
    return "mode" if new.st_mode != state.st_mode else lost


if sys.platform == "linux":

    def _copy_extended(source: Path, target: Path) -> str | None:
        """Copy the extended attributes, including access control lists; returns a noun for a lost one."""
        wanted, present = _extended(source), _extended(target)
        for name in present.keys() - wanted.keys():
            with contextlib.suppress(OSError):
                os.removexattr(target, name)
        for name, value in wanted.items():
            if present.get(name) != value:
                with contextlib.suppress(OSError):
                    os.setxattr(target, name, value)
        now = _extended(target)
        differing = sorted(name for name in {*wanted, *now} if wanted.get(name) != now.get(name))
        if not differing:
            return None
        return "access control list" if "acl" in differing[0] else f"attribute {differing[0]}"

    def _extended(path: Path) -> dict[str, bytes]:
        try:
            names = [name for name in os.listxattr(path) if name not in _DERIVED]
        except OSError:
            return {}  # the file system has none
        return {name: os.getxattr(path, name) for name in names}
