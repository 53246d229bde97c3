"""Find a project's required version of transformers, in its requirements and lock files."""

# Paths are plain strings here, as elsewhere.
# ruff: noqa: PTH112, PTH120, PTH208

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from itertools import islice
from typing import Any

from shapefix.diagnostics import Failure
from shapefix.sources.text import LARGEST_SETTINGS, RefusedFile, Unreadable, read_bytes

_NAME = b"transformers"

_REQUIREMENT = re.compile(
    r"transformers\s*(?:\[[^\]]*\])?\s*(?:\(\s*)?((?:[=<>~!]=?=?\s*[\w.*+!-]+\s*,?\s*)+)", re.IGNORECASE
)
"""A requirement as pip and conda know it, with its bounds."""
_TAG = re.compile(r"huggingface/transformers(?:\.git)?@v?(\d+(?:\.\d+)+)(?![\w.])", re.IGNORECASE)
"""A version in the address of the repository."""
_LOCKED = re.compile(
    r'^\[\[package\]\]\s*^name\s*=\s*"transformers"\s*^version\s*=\s*"([^"]+)"', re.MULTILINE
)
_QUOTED = re.compile(r"""["'](transformers\b[^"'\n]*)["']""", re.IGNORECASE)

_KNOWN = [f"{major}.{minor}" for major, last in ((3, 5), (4, 57), (5, 99)) for minor in range(last + 1)]
"""Versions to try bounds with, in order; of the last ones not all are there yet."""


_LONGEST = 1_000
"""Characters in bounds, and in a version: longer ones are ignored, they would only take time."""
_MOST = 100
"""Bounds that are read from one file."""
_MOST_FILES = 100
"""Files of one kind in a folder."""
_LARGEST_LOCK = 16 * LARGEST_SETTINGS
"""Bytes of a lock file: with torch and its wheels they are often larger than other settings."""
_WIDE = re.compile(r"[^\S\n]{100,}")


class Requirements:
    """The requirements of each folder; each file is read once."""

    def __init__(self) -> None:
        self._of_folder: dict[str, tuple[str | None, str | None]] = {}
        self._nearest: dict[tuple[str, str], tuple[str | None, str | None]] = {}
        self._unused: list[Failure] = []

    def unused(self) -> tuple[Failure, ...]:
        """Return the refused files: too large, or not regular files."""
        return tuple(self._unused)

    def transformers_version(self, folder: str, root: str) -> str | None:
        """The version bounds of the nearest folder with any, from this one up to root; paths are absolute.

        None if no folder has any: assume the newest version. Never raises.
        """
        return self._versions(folder, root)[0]

    def oldest_transformers(self, folder: str, root: str) -> str | None:
        """The oldest version within those bounds; None if no folder has any."""
        return self._versions(folder, root)[1]

    def _versions(self, folder: str, root: str) -> tuple[str | None, str | None]:
        key = (folder, root)
        if key not in self._nearest:
            if folder not in self._of_folder:
                self._of_folder[folder] = _permitted(folder, self._unused.append)
            newest, oldest = self._of_folder[folder]
            parent = os.path.dirname(folder)
            if newest is None and folder != root and parent != folder:
                newest, above = self._versions(parent, root)
                oldest = oldest or above
            self._nearest[key] = newest, oldest
        return self._nearest[key]


def transformers_version(root: str | os.PathLike[str]) -> str | None:
    """Return the version of transformers required by the files in one folder, as `4.57.6` or `4.57`.

    Locks precede pins, and pins precede bounds; for bounds it is the newest version that they allow. None if
    there is no requirement, or the newest version is allowed. Malformed files are ignored.
    """
    return _permitted(os.fspath(root), lambda _: None)[0]


def _permitted(folder: str, refused: Callable[[Failure], None]) -> tuple[str | None, str | None]:
    """Return the newest and the oldest version required by the files in one folder.

    refused gets the files that are not read.
    """
    names = [name for name in _listing(folder) if _MAY_REQUIRE.match(name)]
    names += [f"requirements/{name}" for name in _listing(f"{folder}/requirements") if name.endswith(".txt")]
    bounds: list[str] = []
    for pattern, read in _READERS:
        for name in islice((name for name in names if fnmatch(name, pattern)), _MOST_FILES):
            asked = islice(_required(f"{folder}/{name}", read, refused), _MOST)
            found = [each for each in asked if len(each) <= _LONGEST]
            pins = [pin for pin in map(_pin, found) if pin]
            if pins:
                return max(pins, key=_release), min(pins, key=_release)
            bounds += found
    newest = [version for version in map(_newest, bounds) if version]
    oldest = [version for version in map(_oldest, bounds) if version]
    # Where one file lets more through than another, the narrower one is what gets installed.
    return min(newest, key=_release, default=None), min(oldest, key=_release, default=None)


def _listing(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []


def is_version(text: str) -> bool:
    """Check whether the text is a version, as `4.57` or `5.0.0rc1`."""
    from packaging.version import InvalidVersion, Version

    if len(text) > _LONGEST:
        return False
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _required(
    path: str, read: Callable[[str], Iterable[str]], refused: Callable[[Failure], None]
) -> Iterator[str]:
    """Return the bounds on transformers in a file: `==4.57.6`, `>=4.30,<5`."""
    try:
        data = read_bytes(path, _LARGEST_LOCK if path.endswith(".lock") else LARGEST_SETTINGS)
        if _NAME in data.lower():
            # The patterns below, and configparser's, are slow on long runs of spaces.
            yield from read(_WIDE.sub(" " * 100, data.decode("utf-8-sig")))
    except RefusedFile as error:
        if not os.path.isdir(path):
            refused(Failure(path, f"{error.message}; its requirements are not used"))
    except (Unreadable, ValueError, RecursionError):
        # Other tools report malformed files.
        return


def _pin(bounds: str) -> str | None:
    """Return the pinned version, if there is one."""
    exact = re.fullmatch(r"={2,3}\s*v?(\d+(?:\.\d+)*(?:\.?(?:a|b|rc|post|dev)\d+)*)", bounds)
    return exact[1] if exact else None


def _newest(bounds: str) -> str | None:
    """Return the newest version within bounds; None for the latest, and for malformed bounds."""
    newest = _first(bounds, reversed(_KNOWN))
    return None if newest == _KNOWN[-1] else newest


def _oldest(bounds: str) -> str | None:
    """Return the oldest version within bounds; None for malformed bounds."""
    return _first(bounds, _KNOWN)


def _first(bounds: str, versions: Iterable[str]) -> str | None:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        allowed = SpecifierSet(bounds)
    except InvalidSpecifier:
        return None
    # `~=4.40.1` lets a later 4.40 through, but not the first one.
    return next((each for each in versions if allowed.contains(each) or allowed.contains(f"{each}.99")), None)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _bounds(requirement: str) -> Iterator[str]:
    """The bounds in a requirement, or in a line starting with one."""
    found = _REQUIREMENT.match(" ".join(requirement.split()))
    tag = _TAG.search(requirement)
    if found is not None:
        yield found[1].strip().rstrip(",")
    elif tag is not None:
        yield f"=={tag[1]}"


def _lines(text: str) -> Iterator[str]:
    """requirements.txt: a requirement in each line, and perhaps its hashes, or a comment."""
    for line in text.splitlines():
        yield from _bounds(line.partition(" #")[0])


def _conda(text: str) -> Iterator[str]:
    """environment.yml: `- transformers=4.40` and, below pip, `- transformers==4.40.0`."""
    for line in text.splitlines():
        item = re.match(r"""\s*-\s*["']?(?:[\w.-]+::)?(.*?)["']?\s*(?:#.*)?$""", line)
        for bounds in _bounds(item[1]) if item else ():
            fuzzy = re.fullmatch(r"=\s*(\d+(?:\.\d+)*)(?:\.\*|\*)?(?:=.*)?", bounds)
            if fuzzy is None:
                yield bounds
            else:
                yield f"=={fuzzy[1]}" if fuzzy[1].count(".") > 1 else f"=={fuzzy[1]}.*"


def _quoted(text: str) -> Iterator[str]:
    """setup.py: the requirements among its strings. It is not run."""
    for string in _QUOTED.finditer(text):
        yield from _bounds(string[1])


def _locked(text: str) -> Iterator[str]:
    """uv.lock, poetry.lock, pdm.lock: parsing all their TOML would take a hundred times longer."""
    for package in _LOCKED.finditer(text.replace("\r\n", "\n")):
        yield f"=={package[1]}"


def _pipfile_lock(text: str) -> Iterator[str]:
    content = json.loads(text)
    for group in ("default", "develop"):
        yield from _strings(_at(content, group, "transformers", "version"))


def _pyproject(text: str) -> Iterator[str]:
    """pyproject.toml: dependencies, extras and groups, and their equivalents in poetry and pdm."""
    import tomllib

    content = tomllib.loads(text)
    project = _at(content, "project")
    pip = [
        _at(project, "dependencies"),
        *_values(_at(project, "optional-dependencies")),
        *_values(_at(content, "dependency-groups")),
        *_values(_at(content, "tool", "pdm", "dev-dependencies")),
    ]
    for requirement in _strings(pip):
        yield from _bounds(requirement)
    poetry = _at(content, "tool", "poetry")
    for group in (
        _at(poetry, "dependencies"),
        _at(poetry, "dev-dependencies"),
        *(_at(each, "dependencies") for each in _values(_at(poetry, "group"))),
    ):
        asked = _at(group, "transformers")
        for one in asked if isinstance(asked, list) else [asked]:
            for version in _strings(_at(one, "version") if isinstance(one, dict) else one):
                yield ",".join(_of_poetry(part.strip()) for part in version.split(","))


def _of_poetry(bound: str) -> str:
    """`^4.30` and `~4.30` as pip would write them; a bare version is a pin."""
    caret = re.fullmatch(r"\^\s*(\d+)(.*)", bound)
    if caret:
        return f">={caret[1]}{caret[2]},<{int(caret[1]) + 1}"
    tilde = re.fullmatch(r"~\s*(\d+)(?:\.(\d+))?(.*)", bound)
    if tilde:
        return f"=={tilde[1]}.{tilde[2]}.*" if tilde[2] else f"=={tilde[1]}.*"
    if bound == "*":
        return ""
    return f"=={bound}" if bound[:1].isdigit() else bound


def _setup_cfg(text: str) -> Iterator[str]:
    from configparser import ConfigParser, Error

    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except Error:
        return
    for section in ("options", "options.extras_require"):
        for option, value in parser.items(section) if parser.has_section(section) else ():
            if option == "install_requires" or section != "options":
                for line in value.splitlines():
                    yield from _bounds(line)


def _at(content: Any, *keys: str) -> Any:
    """Return the value below these keys; None if a key on the way is not a table."""
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _values(content: Any) -> list[Any]:
    return list(content.values()) if isinstance(content, dict) else []


def _strings(content: Any) -> Iterator[str]:
    """All strings in lists within lists."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for each in content:
            yield from _strings(each)


_MAY_REQUIRE = re.compile(r"(?:uv|poetry|pdm|Pipfile)\.lock|requirements|pyproject|setup|environment")

_READERS: tuple[tuple[str, Callable[[str], Iterable[str]]], ...] = (
    ("uv.lock", _locked),
    ("poetry.lock", _locked),
    ("pdm.lock", _locked),
    ("Pipfile.lock", _pipfile_lock),
    ("requirements.txt", _lines),
    ("pyproject.toml", _pyproject),
    ("setup.cfg", _setup_cfg),
    ("setup.py", _quoted),
    ("environment.y*ml", _conda),
    ("requirements[-_]*.txt", _lines),
    ("requirements/*.txt", _lines),
)
"""Which files are read how; where several pin a version, the first of them decides."""
