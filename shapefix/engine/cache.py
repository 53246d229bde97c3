"""Results of earlier runs, valid until a dependency changes."""

# Paths are plain strings here: this runs for every file of a warm run.
# ruff: noqa: PTH100, PTH103, PTH105, PTH106, PTH108, PTH110, PTH116, PTH118, PTH120, PTH123, PTH208

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Iterable

import shapefix
from shapefix.engine.cache_entries import CachedResult, content_hash, from_bytes, to_bytes
from shapefix.engine.user_cache import remove_old_projects
from shapefix.rulebook import plugins
from shapefix.rulebook.pages import pages
from shapefix.sources.text import Unreadable, read_bytes

_LARGEST_ENTRY = 64_000_000
_NOT_A_FILE = "not a readable file"
_ENTRY_NAME = re.compile(rf"[0-9a-f]{{{len(content_hash(b''))}}}")
_IGNORE_ALL = "# The cache of shapefix: safe to delete.\n*\n"


def fingerprint(*settings: str) -> str:
    """Hash the version and source files of shapefix, libcst, Python, and the settings.

    Source files count by size and time of change, so development on shapefix never sees old results.
    """
    own = os.path.dirname(shapefix.__file__)
    files = [os.path.join(folder, name) for folder, _, names in os.walk(own) for name in names]
    sources = [path for path in files if path.endswith(".py")]
    # Names and severities of findings come from the rule pages.
    sources += [str(page.path) for page in pages()]
    sources += map(str, plugins.source_files())
    # One file of libcst is enough: an upgrade rewrites it.
    spec = importlib.util.find_spec("libcst")
    if spec and spec.origin:
        sources.append(spec.origin)
    parts = [shapefix.__version__, sys.version, *settings]
    for path in sorted(sources):
        state = os.stat(path)
        parts.append(f"{path} {state.st_size} {state.st_mtime_ns}")
    return content_hash("\0".join(parts).encode("utf-8", "surrogatepass"))


def remove_results(directory: str) -> int | None:
    """Delete the results in a cache folder, and return their number; None if it is not a cache.

    Anything else in the folder stays.
    """
    ignore = os.path.join(directory, ".gitignore")
    try:
        if read_bytes(ignore, len(_IGNORE_ALL)) != _IGNORE_ALL.encode():
            return None
    except Unreadable:
        return None
    names = [name for name in os.listdir(directory) if _ENTRY_NAME.fullmatch(name)]
    for name in (*names, ".gitignore"):
        os.unlink(os.path.join(directory, name))
    with contextlib.suppress(OSError):
        os.rmdir(directory)
    return len(names)


class Cache:
    """Cache entries in a folder, one file each, from runs with the same fingerprint.

    Entries are signed: those without the signature of this user's key are misses, so the folder may be in a
    repository from elsewhere.

    Other processes may use the folder at the same time. A broken entry is a miss; if the folder is not
    writable, nothing is cached. The state of a file is read once: use a Cache for one run, and call forget
    after writing a file.
    """

    def __init__(self, directory: str, fingerprint: str, key: bytes) -> None:
        self._directory = os.path.abspath(directory)
        self._key = key
        self._fingerprint = fingerprint
        self._hashes: dict[str, str | None] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._is_writable: bool | None = None

    def get(self, path: str, content: str) -> CachedResult | None:
        """Return the result for a file with this content_hash, if no dependency has changed."""
        self._hashes[os.path.abspath(path)] = content
        try:
            name = self._entry_name(path)
            entry = from_bytes(read_bytes(self._at(name), _LARGEST_ENTRY), name=name, key=self._key)
            if entry is None or entry.fingerprint != self._fingerprint or entry.content != content:
                return None
            for folder, names in entry.missing.items():
                if not self._listing(folder).isdisjoint(names):
                    return None
            if any(self.hash(dependency) != known for dependency, known in entry.found.items()):
                return None
            return entry.result()
        except (Unreadable, OSError, ValueError, TypeError, RecursionError):
            return None

    def put(self, path: str, content: str, result: CachedResult) -> None:
        """Cache the result for a file with this content_hash."""
        if self._is_writable is None:
            self._is_writable = self._prepare()
        if self._is_writable:
            name = self._entry_name(path)
            entry = to_bytes(self._fingerprint, content, result, name=name, key=self._key)
            self._is_writable = _write(self._at(name), entry)

    def hash(self, path: str) -> str | None:
        """Return the content_hash of a file in this run; None if there is no such file."""
        if path in self._hashes:
            return self._hashes[path]
        absolute = os.path.abspath(path)
        if absolute not in self._hashes:
            self._hashes[absolute] = _hash_of_file(absolute)
        return self._hashes[absolute]

    def dependencies(self, found: Iterable[str], missing: Iterable[str]) -> dict[str, str | None]:
        """Return the dependencies of a CachedResult for found files and missing paths."""
        return {**dict.fromkeys(missing), **{path: self.hash(path) for path in found}}

    def forget(self, path: str) -> None:
        """Read the file at path again next time, because it was written."""
        self._hashes.pop(os.path.abspath(path), None)
        self._names.clear()

    def _entry_name(self, path: str) -> str:
        # Findings contain paths as written on the command line, so these are part of the name.
        return content_hash(f"{os.path.abspath(path)}\0{path}".encode("utf-8", "surrogatepass"))

    def _at(self, name: str) -> str:
        return f"{self._directory}{os.sep}{name}"

    def _listing(self, folder: str) -> frozenset[str]:
        """Return the names in a folder; empty if there is no such folder."""
        if folder not in self._names:
            try:
                self._names[folder] = frozenset(os.listdir(folder or os.curdir))
            except OSError:
                self._names[folder] = frozenset()
        return self._names[folder]

    def _prepare(self) -> bool:
        """Create the folder, and hide it from git; return False if that is impossible.

        A folder with other files is not a cache: git would not see them any more.
        """
        ignore = self._at(".gitignore")
        try:
            os.makedirs(self._directory, exist_ok=True)
            if not os.listdir(self._directory):
                remove_old_projects(self._directory)
                return _write(ignore, _IGNORE_ALL.encode())
            return read_bytes(ignore, len(_IGNORE_ALL)) == _IGNORE_ALL.encode()
        except (OSError, Unreadable):
            return False


def _hash_of_file(path: str) -> str | None:
    try:
        return content_hash(read_bytes(path))
    except Unreadable:
        return _NOT_A_FILE if os.path.exists(path) else None


def _write(path: str, data: bytes) -> bool:
    """Write a file atomically; return False if that is impossible."""
    draft = f"{path}.{os.getpid()}-{threading.get_ident()}"
    try:
        # A link of this name would lead elsewhere.
        with open(draft, "xb") as file:
            file.write(data)
        os.replace(draft, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        return False
    return True
