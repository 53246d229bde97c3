"""The user's own cache folder, with the results of each project, and the signing key.

A checked repository may contain anything, also a made-up cache. Results are believed only with the signature
of this user's key, and by default no result is kept in the repository at all.
"""

# Paths are plain strings here, as in the cache.
# ruff: noqa: PTH103, PTH105, PTH108, PTH111, PTH114, PTH116, PTH117, PTH118, PTH119, PTH120, PTH123, PTH208

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b

from shapefix.sources.text import Unreadable, read_bytes

_KEY_FILE = "key"
_KEY_SIZE = 32
_KEPT_DAYS = 60
"""Days without a new result, after which a project's results are deleted."""


def default_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str | None:
    """Return the user's cache folder for shapefix by the conventions of the system; None without a home."""
    home = os.path.expanduser("~")
    if platform == "win32":
        base = environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
        found = os.path.join(base, "shapefix", "Cache")
    elif platform == "darwin":
        found = os.path.join(home, "Library", "Caches", "shapefix")
    else:
        base = environ.get("XDG_CACHE_HOME", "")
        # Relative paths are to be ignored, says the XDG specification.
        found = os.path.join(base if os.path.isabs(base) else os.path.join(home, ".cache"), "shapefix")
    return found if os.path.isabs(found) else None


def project_folder(root: str) -> str | None:
    """Return the folder for the results of the project at an absolute path; None if there can be none."""
    own = default_folder()
    if own is None:
        return None
    name = re.sub(r"[^\w.-]", "_", os.path.basename(root), flags=re.ASCII)[:40] or "root"
    digest = blake2b(os.fsencode(root), digest_size=8).hexdigest()
    return os.path.join(own, f"{name}-{digest}")


def signing_key() -> bytes | None:
    """Return this user's key, made at first use; None if none can be kept or the folder is open to others."""
    own = default_folder()
    return None if own is None else _key_in(own)


@lru_cache(maxsize=8)
def _key_in(folder: str) -> bytes | None:
    path = os.path.join(folder, _KEY_FILE)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not _is_private(folder):
            return None
        if not os.path.lexists(path):
            _make_key(path)
        if os.path.islink(path) or not _is_private(path):
            return None
        key = read_bytes(path, 10 * _KEY_SIZE)
    except (OSError, Unreadable):
        return None
    return key if len(key) == _KEY_SIZE else None


def _make_key(path: str) -> None:
    """Write a new key; of several processes the first one wins."""
    draft = f"{path}.{secrets.token_hex(8)}"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(_KEY_SIZE))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError:
        # A file system without hard links; another process may make a key now, and one of them is lost.
        os.replace(draft, path)
        return
    os.unlink(draft)


def _is_private(path: str) -> bool:
    """Check that only this user writes here."""
    if not hasattr(os, "geteuid"):
        return True
    state = os.stat(path)
    return state.st_uid == os.geteuid() and not state.st_mode & 0o022


def remove_old_projects(kept: str) -> None:
    """Remove the results of projects without a new one for months; kept is the folder in use."""
    own = default_folder()
    if own is None or os.path.dirname(kept) != own:
        return
    oldest = time.time() - _KEPT_DAYS * 86_400
    with contextlib.suppress(OSError):
        for name in os.listdir(own):
            path = os.path.join(own, name)
            if path != kept and re.fullmatch(r"[\w.-]+-[0-9a-f]{16}", name, re.ASCII):
                with contextlib.suppress(OSError):
                    if os.stat(path, follow_symlinks=False).st_mtime < oldest:
                        shutil.rmtree(path)
