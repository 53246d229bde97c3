"""Find the required versions of libraries for the files of a project."""

# Paths are plain strings here, as elsewhere.
# ruff: noqa: PTH112, PTH119, PTH120, PTH208

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import cache
from itertools import islice
from pathlib import Path

from shapefix.diagnostics import Failure
from shapefix.light_dataclasses import dataclass
from shapefix.sources.notebooks import OtherLanguage, code_cells, typed_text
from shapefix.sources.required_libraries import PACKAGES, PYTHON, REQUIRED, TRANSFORMERS, RequiredLibrary
from shapefix.sources.requirement_formats import (
    COPIES,
    LISTS_OF_PACKAGES,
    READERS,
    Reader,
    bounds_in,
    exported_installs,
    installs,
)
from shapefix.sources.text import (
    LARGEST_NOTEBOOK,
    LARGEST_SETTINGS,
    RefusedFile,
    Unreadable,
    is_notebook,
    read_bytes,
)
from shapefix.sources.versions import first_within, newest_within, pinned, release

_NEEDED_FIRST = tuple(
    each
    for key in ("lightning", "accelerate", "datasets", "transformers", "peft", "trl", "numpy")
    for each in PACKAGES
    if each.key == key
)
"""Libraries with needs of others, after those that they need."""
_NAMES = tuple(name.encode() for package in REQUIRED for name in package.names)
_MOST_BOUNDS = 20
"""Different bounds on a library that are tried in one folder."""
_MOST_FILES = 100
"""Files of one kind in a folder."""
_LARGEST_LOCKS = {
    **dict.fromkeys(("uv.lock", "poetry.lock", "pdm.lock"), 16 * LARGEST_SETTINGS),
    # The values of its JSON take ten times its size.
    "Pipfile.lock": 4 * LARGEST_SETTINGS,
}
"""Bytes of lock files: with torch and its wheels they are often larger than other settings."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WIDE = re.compile(r"[^\S\n]{100,}")
_Versions = Mapping[str, tuple[str | None, str | None]]
"""The newest and the oldest required version of each library."""


@dataclass(frozen=True)
class PermittedVersions:
    """The newest version of transformers for a file, None for any, and the oldest ones of all libraries."""

    transformers: str | None
    oldest: Mapping[str, str]


class Requirements:
    """The requirements of each folder; each file is read once."""

    def __init__(self) -> None:
        self._of_folder: dict[str, _Versions] = {}
        self._nearest: dict[tuple[str, str], _Versions] = {}
        self._permitted: dict[tuple[str, str], PermittedVersions] = {}
        self._unused: list[Failure] = []

    def unused(self) -> tuple[Failure, ...]:
        """Return the refused files: too large, or not regular files."""
        return tuple(self._unused)

    def transformers_version(self, path: str, root: str) -> str | None:
        """The newest version of transformers for the file at path, in the project at root.

        It is that of the nearest requirement: the commands of a notebook, also in the script that it is
        exported as, then the folders from its own up to root. Without any it is None: assume the newest
        version. Never raises.
        """
        return self._for_file(path, root).transformers

    def oldest_versions(self, path: str, root: str) -> dict[str, str]:
        """The oldest version of each library by those requirements; libraries without any are left out.

        A library without its own requirement may be limited by those of others: `torch==1.12` and
        `python=3.8` refuse the newest Lightning.
        """
        return dict(self._for_file(path, root).oldest)

    def _for_file(self, path: str, root: str) -> PermittedVersions:
        """The versions for a file, the same ones for all scripts of a folder without own commands."""
        folder = os.path.dirname(path)
        own = _of_notebook(path) if is_notebook(path) else _of_script(path)
        key = (path if own else folder, root)
        if key not in self._permitted:
            above = self._versions(folder, root)
            found = {name: _nearer(own.get(name, (None, None)), each) for name, each in above.items()}
            self._permitted[key] = _with_fitting(found)
        return self._permitted[key]

    def _versions(self, folder: str, root: str) -> _Versions:
        key = (folder, root)
        if key not in self._nearest:
            parent = os.path.dirname(folder)
            is_top = folder == root or parent == folder
            if folder not in self._of_folder:
                self._of_folder[folder] = _permitted(folder, self._unused.append, with_setup=is_top)
            found = self._of_folder[folder]
            if not is_top:
                above = self._versions(parent, root)
                found = {name: _nearer(each, above[name]) for name, each in found.items()}
            self._nearest[key] = found
        return self._nearest[key]


def _with_fitting(required: _Versions) -> PermittedVersions:
    """Complete the required versions with the newest ones beside them."""
    fitting = newest_fitting(required)
    oldest = {key: version for key, (_, version) in required.items() if version is not None}
    return PermittedVersions(
        required[TRANSFORMERS.key][0] or fitting.get(TRANSFORMERS.key),
        {key: version for key, version in (fitting | oldest).items() if key != PYTHON.key},
    )


@cache
def version_needs() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return the oldest version of a needed library since a version, by library and needed library.

    `version_needs.json` is written by tests/library/generate_version_needs.py from their metadata.
    """
    from importlib.resources import files

    path = files("shapefix.sources") / "version_needs.json"
    found: Mapping[str, Mapping[str, Mapping[str, str]]] = json.loads(path.read_text("utf-8"))
    return found


def newest_fitting(required: _Versions) -> dict[str, str]:
    """Return the newest version of each library beside the required ones of others; a missing one is any."""
    newest = {key: version for key, (version, _) in required.items() if version is not None}
    fitting: dict[str, str] = {}
    for package in _NEEDED_FIRST if newest else ():
        for needed, steps in version_needs()[package.key].items():
            have = release(newest[needed])[:2] if needed in newest else None
            refused = next((each for each, bound in steps.items() if have and have < release(bound)), None)
            if refused is None:
                continue
            before = [each for each in package.known() if release(each) < release(refused)]
            if before:
                fitting[package.key] = min(before[-1], fitting.get(package.key, before[-1]), key=release)
        if package.key in fitting:
            limits = (fitting[package.key], newest.get(package.key, fitting[package.key]))
            newest[package.key] = min(limits, key=release)
    return fitting


def _of_notebook(path: str) -> _Versions:
    """Return the versions installed by the cells of a notebook, none if it cannot be read."""
    try:
        data = read_bytes(path, LARGEST_NOTEBOOK)
        if b"install" not in data:
            return {}
        text = "\n".join(typed_text(cell) for _, cell in code_cells(data))
    except (RefusedFile, Unreadable, OtherLanguage, ValueError):
        # The check of the notebook says what is wrong with it.
        return {}
    return _of_commands(bounds_in(text, installs)) or _of_commands(bounds_in(text, exported_installs))


def _of_script(path: str) -> _Versions:
    """Return the versions installed by an exported notebook: `# !pip install transformers==4.30`."""
    try:
        data = read_bytes(path, LARGEST_SETTINGS)
        text = data.decode("utf-8-sig") if b" install " in data else ""
    except (Unreadable, RefusedFile, ValueError):
        # The check of the script says what is wrong with it.
        return {}
    return _of_commands(bounds_in(text, exported_installs)) if text else {}


def _of_commands(found: Mapping[str, list[str]]) -> _Versions:
    if not any(found.values()):
        return {}
    return {package.key: _bounded(package, [found.get(package.key, [])]) for package in REQUIRED}


def _nearer(
    near: tuple[str | None, str | None], above: tuple[str | None, str | None]
) -> tuple[str | None, str | None]:
    return near if near[0] is not None else (above[0], near[1] or above[1])


def transformers_version(root: str | os.PathLike[str]) -> str | None:
    """Return the version of transformers required by the files in one folder, as `4.57.6` or `4.57`.

    Locks precede pins, and pins precede bounds; for bounds it is the newest version that they allow. None if
    there is no requirement, or the newest version is allowed. Malformed files are ignored.
    """
    return _permitted(os.fspath(root), lambda _: None)[TRANSFORMERS.key][0]


def _permitted(folder: str, refused: Callable[[Failure], None], *, with_setup: bool = False) -> _Versions:
    """Return the newest and the oldest version of each library required by the files in one folder.

    refused gets the files that are not read. with_setup is whether the folders below count that only set up
    the environment: `docker`, `build`, `.devcontainer`.
    """
    listing = _listing(folder)
    names = [name for name in listing if _MAY_REQUIRE.search(name)]
    names += [f"requirements/{name}" for name in _listing(f"{folder}/requirements") if name.endswith(".txt")]
    names += [name for name in COPIES if name.partition("/")[0] in listing and Path(folder, name).is_file()]
    places = [(folder, names)]
    if with_setup:
        places += ((f"{folder}/{name}", below) for name, below in _setup_folders(folder, listing))
    # One text at a time: a folder may have many large files.
    found = [
        bounds_in(_text(f"{place}/{name}", refused if _REQUIRES.match(name) else _ignored), read)
        for place, names in places
        for name, read in _readers(names)
    ]
    return {
        package.key: _bounded(package, [each.get(package.key, []) for each in found]) for package in REQUIRED
    }


def _readers(names: Sequence[str]) -> Iterator[tuple[str, Reader]]:
    """Yield each of these files with its reader, in the order of precedence of their pins."""
    left = dict.fromkeys(names)
    for pattern, read in READERS:
        for name in list(islice((name for name in left if fnmatch(name, pattern)), _MOST_FILES)):
            del left[name]
            yield name, read


def _setup_folders(folder: str, listing: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the folders below without code but with requirements, and the names of these files."""
    for name in islice((each for each in listing if "." not in each[1:]), _MOST_FILES):
        if name in ("requirements", ".git"):
            continue
        below = _listing(f"{folder}/{name}")
        required = [each for each in below if _MAY_REQUIRE.search(each)]
        if required and not any(each.endswith((".py", ".ipynb")) and each != "setup.py" for each in below):
            yield name, required


def _bounded(package: RequiredLibrary, files: Iterable[list[str]]) -> tuple[str | None, str | None]:
    """Return the newest and the oldest version of a library within the bounds of these files."""
    bounds: list[str] = []
    for found in files:
        pins = [pin for pin in map(pinned, found) if pin]
        if pins:
            return max(pins, key=release), min(pins, key=release)
        bounds += found
    bounds = list(dict.fromkeys(bounds))[:_MOST_BOUNDS]
    known = package.known()
    newest = [version for each in bounds if (version := newest_within(each, known))]
    oldest = [version for each in bounds if (version := first_within(each, known))]
    # Where one file lets more through than another, the narrower one is what gets installed.
    return min(newest, key=release, default=None), min(oldest, key=release, default=None)


def _listing(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []


def _text(path: str, refused: Callable[[Failure], None]) -> str:
    """Return the text of a file with requirements; empty if it has none of the libraries."""
    most = _LARGEST_LOCKS.get(os.path.basename(path), LARGEST_SETTINGS)
    try:
        data = read_bytes(path, most)
        if data.startswith(_UTF16):
            # As `pip freeze > requirements.txt` writes in PowerShell.
            data = data.decode("utf-16").encode()
        lower = data.lower()
        if any(name in lower for name in _NAMES):
            # The patterns below, and configparser's, are slow on long runs of spaces. One character of
            # another script would make all of a large lock take four times the memory.
            return _WIDE.sub(" " * 100, data.decode("utf-8-sig" if most == LARGEST_SETTINGS else "latin-1"))
    except RefusedFile as error:
        if not os.path.isdir(path):
            refused(Failure(path, f"{error.message}; its requirements are not used"))
    except (Unreadable, ValueError):
        # Other tools report malformed files.
        pass
    return ""


_REQUIRES = re.compile(
    r"(?:(?:uv|poetry|pdm|Pipfile)\.lock|requir|pyproject|setup|environment)", re.IGNORECASE
)
"""Starts of the names of files made for requirements."""
_MAY_REQUIRE = re.compile(
    rf"^(?:{_REQUIRES.pattern}|install|Dockerfile|readme|runtime\.txt)"
    rf"|(?:{'|'.join(LISTS_OF_PACKAGES)}).*\.txt$|\.ya?ml$|\.sh$",
    re.IGNORECASE,
)


def _ignored(failure: Failure) -> None:
    """Say nothing about a file with other contents in the first place."""
