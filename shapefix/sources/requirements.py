"""Find the required versions of libraries, in requirements and lock files."""

# Paths are plain strings here, as elsewhere.
# ruff: noqa: PTH112, PTH119, PTH120, PTH208

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any

from shapefix.diagnostics import Failure
from shapefix.sources.bounded_toml import parse_toml
from shapefix.sources.notebooks import OtherLanguage, code_cells, typed_text
from shapefix.sources.text import (
    LARGEST_NOTEBOOK,
    LARGEST_SETTINGS,
    RefusedFile,
    Unreadable,
    is_notebook,
    read_bytes,
)


@dataclass(frozen=True)
class RequiredLibrary:
    """A library with rules for some of its versions.

    names are its spellings in lower case; those of conda are included. address is the end of its repository's
    address. releases are the major versions with their last minor one, 99 for the newest major version.
    """

    key: str
    names: tuple[str, ...]
    address: str
    releases: tuple[tuple[int, int], ...]

    def known(self) -> list[str]:
        """Return the versions to try bounds with, in order; of the last ones not all exist."""
        return [f"{major}.{minor}" for major, last in self.releases for minor in range(last + 1)]

    def pattern(self) -> str:
        """Return the pattern of its names."""
        return "(?:" + "|".join(each.replace("-", "[-_.]") for each in self.names) + ")"


TRANSFORMERS = RequiredLibrary(
    "transformers", ("transformers",), "huggingface/transformers", ((3, 5), (4, 57), (5, 99))
)
PACKAGES = (
    TRANSFORMERS,
    RequiredLibrary("torch", ("torch", "pytorch"), "pytorch/pytorch", ((0, 4), (1, 13), (2, 99))),
    RequiredLibrary(
        "lightning",
        ("pytorch-lightning", "lightning"),
        "Lightning-AI/pytorch-lightning",
        ((0, 10), (1, 9), (2, 99)),
    ),
    RequiredLibrary("trl", ("trl",), "huggingface/trl", ((0, 29), (1, 99))),
    RequiredLibrary("peft", ("peft",), "huggingface/peft", ((0, 99),)),
    RequiredLibrary("accelerate", ("accelerate",), "huggingface/accelerate", ((0, 34), (1, 99))),
    RequiredLibrary(
        "datasets", ("datasets",), "huggingface/datasets", ((1, 18), (2, 21), (3, 6), (4, 8), (5, 99))
    ),
)
"""The libraries whose requirements are read."""
PYTHON = RequiredLibrary("python", ("python",), "python/cpython", ((2, 7), (3, 99)))
_READ = (*PACKAGES, PYTHON)
_NEEDED_FIRST = tuple(
    each
    for key in ("lightning", "accelerate", "datasets", "transformers", "peft", "trl")
    for each in PACKAGES
    if each.key == key
)
"""Libraries with needs of others, after those that they need."""
_NAMES = tuple(name.encode() for package in _READ for name in package.names)
_BOUNDS = r"\s*(?:\[[^\]]*\])?\s*(?:\(\s*)?((?:[=<>~!]=?=?\s*[\w.*+!-]+\s*,?\s*)+)"


@cache
def _line_with(library: RequiredLibrary) -> re.Pattern[str]:
    """Return the pattern of a line, as splitlines() divides, with the name of a library."""
    inside = r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]"
    return re.compile(rf"(?<!{inside}){inside}*?{library.pattern()}{inside}*", re.IGNORECASE)


@cache
def _requirement(package: RequiredLibrary) -> re.Pattern[str]:
    """Return the pattern of a requirement as pip and conda know it, with its bounds."""
    return re.compile(package.pattern() + _BOUNDS, re.IGNORECASE)


@cache
def _tag(package: RequiredLibrary) -> re.Pattern[str]:
    """Return the pattern of a version in the address of the repository."""
    return re.compile(rf"{package.address}(?:\.git)?@v?(\d+(?:\.\d+)+)(?![\w.])", re.IGNORECASE)


@cache
def _lock_entry(package: RequiredLibrary) -> re.Pattern[str]:
    return re.compile(
        rf'^\[\[package\]\]\s*^name\s*=\s*"{package.pattern()}"\s*^version\s*=\s*"([^"]+)"', re.MULTILINE
    )


@cache
def _quoted_requirement(package: RequiredLibrary) -> re.Pattern[str]:
    return re.compile(rf"""["']({package.pattern()}\b[^"'\n]*)["']""", re.IGNORECASE)


_LONGEST = 300
"""Characters in bounds, and in a version: longer ones are ignored, they would only take time."""
_MOST = 100
"""Bounds on a library that are read from one file."""
_MOST_BOUNDS = 20
"""Different bounds on a library that are tried in one folder."""
_MOST_LINES = 1_000
"""Lines with the name of a library that are looked at in one file."""
_MOST_FILES = 100
"""Files of one kind in a folder."""
_LARGEST_LOCKS = {
    **dict.fromkeys(("uv.lock", "poetry.lock", "pdm.lock"), 16 * LARGEST_SETTINGS),
    # The values of its JSON take ten times its size.
    "Pipfile.lock": 4 * LARGEST_SETTINGS,
}
"""Bytes of lock files: with torch and its wheels they are often larger than other settings."""
_WIDE = re.compile(r"[^\S\n]{100,}")


_Libraries = Sequence[RequiredLibrary]
_Reader = Callable[[str, _Libraries], Iterable[tuple[RequiredLibrary, str]]]
"""A function of a text, and of the libraries in it, to their bounds: `==4.57.6`, `>=4.30,<5`."""
_Versions = Mapping[str, tuple[str | None, str | None]]
"""The newest and the oldest required version of each library."""


class Requirements:
    """The requirements of each folder; each file is read once."""

    def __init__(self) -> None:
        self._of_folder: dict[str, _Versions] = {}
        self._nearest: dict[tuple[str, str], _Versions] = {}
        self._unused: list[Failure] = []

    def unused(self) -> tuple[Failure, ...]:
        """Return the refused files: too large, or not regular files."""
        return tuple(self._unused)

    def transformers_version(self, path: str, root: str) -> str | None:
        """The newest version of transformers for the file at path, in the project at root.

        It is that of the nearest requirement: in a notebook the commands of its cells, then the folders from
        its own up to root. Without any it is None: assume the newest version. Never raises.
        """
        found = self._for_file(path, root)
        newest = found[TRANSFORMERS.key][0]
        return newest or newest_fitting(found).get(TRANSFORMERS.key)

    def oldest_versions(self, path: str, root: str) -> dict[str, str]:
        """The oldest version of each library by those requirements; libraries without any are left out.

        A library without its own requirement may be limited by those of others: `torch==1.12` and
        `python=3.8` refuse the newest Lightning.
        """
        found = self._for_file(path, root)
        oldest = {key: oldest for key, (_, oldest) in found.items() if oldest is not None}
        return {
            key: version for key, version in (newest_fitting(found) | oldest).items() if key != PYTHON.key
        }

    def _for_file(self, path: str, root: str) -> _Versions:
        above = self._versions(os.path.dirname(path), root)
        own = _of_notebook(path) if is_notebook(path) else {}
        return {name: _nearer(own.get(name, (None, None)), each) for name, each in above.items()}

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


@cache
def version_needs() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return the oldest version of a needed library since a version, by library and needed library.

    `version_needs.json` is written by tests/library/generate_version_needs.py from their metadata.
    """
    path = files("shapefix.sources") / "version_needs.json"
    found: Mapping[str, Mapping[str, Mapping[str, str]]] = json.loads(path.read_text("utf-8"))
    return found


def newest_fitting(required: _Versions) -> dict[str, str]:
    """Return the newest version of each library beside the required ones of others; a missing one is any."""
    newest = {key: version for key, (version, _) in required.items() if version is not None}
    fitting: dict[str, str] = {}
    for package in _NEEDED_FIRST:
        for needed, steps in version_needs()[package.key].items():
            have = _release(newest[needed])[:2] if needed in newest else None
            refused = next((each for each, bound in steps.items() if have and have < _release(bound)), None)
            before = [each for each in package.known() if refused and _release(each) < _release(refused)]
            if before:
                fitting[package.key] = min(before[-1], fitting.get(package.key, before[-1]), key=_release)
        if package.key in fitting:
            limits = (fitting[package.key], newest.get(package.key, fitting[package.key]))
            newest[package.key] = min(limits, key=_release)
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
    found = _bounds_in(text, _installs)
    return {package.key: _bounded(package, [found.get(package.key, [])]) for package in _READ}


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
    places = [(folder, names)]
    if with_setup:
        places += ((f"{folder}/{name}", below) for name, below in _setup_folders(folder, listing))
    # One text at a time: a folder may have many large files.
    found = [
        _bounds_in(_text(f"{place}/{name}", refused if _REQUIRES.match(name) else _ignored), read)
        for place, names in places
        for pattern, read in _READERS
        for name in islice((name for name in names if fnmatch(name, pattern)), _MOST_FILES)
    ]
    return {
        package.key: _bounded(package, [each.get(package.key, []) for each in found]) for package in _READ
    }


def _setup_folders(folder: str, listing: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the folders below without code but with requirements, and the names of these files."""
    for name in islice((each for each in listing if "." not in each[1:]), _MOST_FILES):
        if name in ("requirements", ".git"):
            continue
        below = _listing(f"{folder}/{name}")
        required = [each for each in below if _MAY_REQUIRE.search(each)]
        if required and not any(each.endswith((".py", ".ipynb")) and each != "setup.py" for each in below):
            yield name, required


def _bounds_in(text: str, read: _Reader) -> Mapping[str, list[str]]:
    """Return the bounds on each library in a file."""
    libraries = [each for each in _READ if re.search(each.pattern(), text, re.IGNORECASE)]
    found: dict[str, list[str]] = {each.key: [] for each in libraries}
    if libraries:
        try:
            for library, bounds in read(text, libraries):
                if len(bounds) <= _LONGEST and len(found[library.key]) < _MOST:
                    found[library.key].append(bounds)
        except (ValueError, RecursionError):
            # Other tools report malformed files.
            pass
    return found


def _bounded(package: RequiredLibrary, files: Iterable[list[str]]) -> tuple[str | None, str | None]:
    """Return the newest and the oldest version of a library within the bounds of these files."""
    bounds: list[str] = []
    for found in files:
        pins = [pin for pin in map(_pin, found) if pin]
        if pins:
            return max(pins, key=_release), min(pins, key=_release)
        bounds += found
    bounds = list(dict.fromkeys(bounds))[:_MOST_BOUNDS]
    known = package.known()
    newest = [version for each in bounds if (version := _newest(each, known))]
    oldest = [version for each in bounds if (version := _first(each, known))]
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


def _text(path: str, refused: Callable[[Failure], None]) -> str:
    """Return the text of a file with requirements; empty if it has none of the libraries."""
    most = _LARGEST_LOCKS.get(os.path.basename(path), LARGEST_SETTINGS)
    try:
        data = read_bytes(path, most)
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


def _pin(bounds: str) -> str | None:
    """Return the pinned version, if there is one."""
    exact = re.fullmatch(r"={2,3}\s*v?(\d+(?:\.\d+)*(?:\.?(?:a|b|rc|post|dev)\d+)*)(?:\+[\w.]+)?", bounds)
    return exact[1] if exact else None


def _newest(bounds: str, known: list[str]) -> str | None:
    """Return the newest version within bounds; None for the latest, and for malformed bounds."""
    newest = _first(bounds, reversed(known))
    return None if newest == known[-1] else newest


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


def _bounds(requirement: str, package: RequiredLibrary) -> Iterator[str]:
    """The bounds in a requirement, or in a line starting with one."""
    found = _requirement(package).match(" ".join(requirement.split()))
    tag = _tag(package).search(requirement)
    if found is not None:
        yield found[1].strip().rstrip(",")
    elif tag is not None:
        yield f"=={tag[1]}"


def _lines(text: str, libraries: _Libraries) -> Iterator[tuple[RequiredLibrary, str]]:
    """requirements.txt: a requirement in each line, and perhaps its hashes, or a comment."""
    for library in libraries:
        for line in _lines_with(text, library):
            for bounds in _bounds(line.partition(" #")[0], library):
                yield library, bounds


def _lines_with(text: str, library: RequiredLibrary) -> Iterator[str]:
    """Return the lines with the name of a library, the first ones of very many."""
    found = _line_with(library).finditer(text)
    return (each[0] for each in islice(found, _MOST_LINES))


def _conda(text: str, libraries: _Libraries) -> Iterator[tuple[RequiredLibrary, str]]:
    """environment.yml: `- transformers=4.40` and, below pip, `- transformers==4.40.0`."""
    if not re.search(r"^dependencies:", text, re.MULTILINE):
        return
    for library in libraries:
        for line in _lines_with(text, library):
            item = re.match(r"""\s*-\s*["']?(?:[\w.-]+::)?""", line)
            written = line[item.end() :].partition("#")[0].rstrip() if item else ""
            yield from ((library, each) for each in _of_conda(re.sub(r"""["']\Z""", "", written), library))


def _of_conda(requirement: str, library: RequiredLibrary) -> Iterator[str]:
    """The bounds in a requirement of conda: one `=` allows all versions with this start."""
    for bounds in _bounds(requirement, library):
        fuzzy = re.fullmatch(r"=\s*(\d+(?:\.\d+)*)(?:\.\*|\*)?(?:=.*)?", bounds)
        if fuzzy is None:
            yield bounds
        else:
            yield f"=={fuzzy[1]}" if fuzzy[1].count(".") > 1 else f"=={fuzzy[1]}.*"


_INSTALLED = re.compile(
    r"^(?![ \t]*#).*?\b(?:pip3?|conda|mamba|uv pip|poetry|uv)\s+(?:install|add)\b(.*)", re.MULTILINE
)
_IMAGE = re.compile(r"^\s*FROM\s+(?:\S*/)?python:(\d+\.\d+)", re.MULTILINE)


def _installs(text: str, libraries: _Libraries) -> Iterator[tuple[RequiredLibrary, str]]:
    """Commands in a notebook, a Dockerfile, a script or a manual: `pip install transformers==4.30`."""
    if PYTHON in libraries:
        yield from ((PYTHON, f"=={version}.*") for version in islice(_IMAGE.findall(text), _MOST))
    for command in islice(_INSTALLED.finditer(re.sub(r"\\\r?\n", " ", text)), _MOST_LINES):
        for word in command[1].split():
            requirement = word.strip("\"'`")
            for library in libraries:
                yield from ((library, bounds) for bounds in _of_conda(requirement, library))


_OR_LATER = r"\+|\s*(?:\)|,)?\s*(?:or|and)\s+(?:later|newer|above|higher|up)"


@cache
def _tested_with(package: RequiredLibrary) -> re.Pattern[str]:
    """Return the pattern of a library with a version in prose: `PyTorch Lightning 1.5`, `torch >= 1.8`."""
    name = package.pattern().replace("[-_.]", "[-_. ]")
    return re.compile(
        rf"(?<![\w/.-]){name}[`*|:\s]*(>=|==?|~=|v)?\s*(\d+\.\d+)(?:\.\d+)*({_OR_LATER})?", re.IGNORECASE
    )


def _manual(text: str, libraries: _Libraries) -> Iterator[tuple[RequiredLibrary, str]]:
    """README: its commands, and the versions named by the authors."""
    yield from _installs(text, libraries)
    for library in libraries:
        for relation, version, later in islice(_tested_with(library).findall(text), _MOST):
            yield library, f">={version}" if relation == ">=" or later else f"=={version}.*"


def _python_version(text: str, libraries: _Libraries) -> Iterator[tuple[RequiredLibrary, str]]:
    """`runtime.txt` of Heroku and Binder."""
    found = re.match(r"\s*python-(\d+\.\d+)", text)
    if found is not None:
        yield PYTHON, f"=={found[1]}.*"


def _quoted(text: str, libraries: _Libraries) -> Iterator[tuple[RequiredLibrary, str]]:
    """setup.py: the requirements among its strings. It is not run."""
    for library in libraries:
        for string in islice(_quoted_requirement(library).finditer(text), _MOST_LINES):
            for bounds in _bounds(string[1], library):
                yield library, bounds


def _locked(text: str, libraries: _Libraries) -> Iterator[tuple[RequiredLibrary, str]]:
    """uv.lock, poetry.lock, pdm.lock: parsing all their TOML would take a hundred times longer."""
    text = text.replace("\r\n", "\n")
    for library in libraries:
        for entry in islice(_lock_entry(library).finditer(text), _MOST):
            yield library, f"=={entry[1]}"


def _pipfile_lock(text: str, libraries: _Libraries) -> Iterator[tuple[RequiredLibrary, str]]:
    content = json.loads(text)
    for library in libraries:
        for group in ("default", "develop"):
            for name in library.names:
                for version in _strings(_at(content, group, name, "version")):
                    yield library, version


def _pyproject(text: str, libraries: _Libraries) -> Iterator[tuple[RequiredLibrary, str]]:
    """pyproject.toml: dependencies, extras and groups, and their equivalents in poetry and pdm."""
    content = parse_toml(text)
    project = _at(content, "project")
    if PYTHON in libraries:
        yield from ((PYTHON, bounds) for bounds in _strings(_at(project, "requires-python")))
    pip = [
        _at(project, "dependencies"),
        *_values(_at(project, "optional-dependencies")),
        *_values(_at(content, "dependency-groups")),
        *_values(_at(content, "tool", "pdm", "dev-dependencies")),
    ]
    for requirement in _strings(pip):
        for library in libraries:
            for bounds in _bounds(requirement, library):
                yield library, bounds
    poetry = _at(content, "tool", "poetry")
    for group in (
        _at(poetry, "dependencies"),
        _at(poetry, "dev-dependencies"),
        *(_at(each, "dependencies") for each in _values(_at(poetry, "group"))),
    ):
        for library in libraries:
            for name in library.names:
                yield from ((library, bounds) for bounds in _poetry_bounds(_at(group, name)))


def _poetry_bounds(dependency: Any) -> Iterator[str]:
    for one in dependency if isinstance(dependency, list) else [dependency]:
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


def _setup_cfg(text: str, libraries: _Libraries) -> Iterator[tuple[RequiredLibrary, str]]:
    from configparser import ConfigParser, Error

    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except Error:
        return
    for section in ("options", "options.extras_require"):
        for option, value in parser.items(section) if parser.has_section(section) else ():
            if option == "install_requires" or section != "options":
                for library in libraries:
                    for line in _lines_with(value, library):
                        yield from ((library, bounds) for bounds in _bounds(line, library))


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


_REQUIRES = re.compile(
    r"(?:(?:uv|poetry|pdm|Pipfile)\.lock|requir|pyproject|setup|environment)", re.IGNORECASE
)
"""Starts of the names of files made for requirements."""
_MAY_REQUIRE = re.compile(
    rf"^(?:{_REQUIRES.pattern}|install|Dockerfile|readme|runtime\.txt)|\.ya?ml$|\.sh$", re.IGNORECASE
)


def _ignored(failure: Failure) -> None:
    """Say nothing about a file with other contents in the first place."""


_READERS: tuple[tuple[str, _Reader], ...] = (
    ("uv.lock", _locked),
    ("poetry.lock", _locked),
    ("pdm.lock", _locked),
    ("Pipfile.lock", _pipfile_lock),
    ("requirements.txt", _lines),
    ("pyproject.toml", _pyproject),
    ("setup.cfg", _setup_cfg),
    ("setup.py", _quoted),
    ("*.y*ml", _conda),
    ("requirements[-_]*.txt", _lines),
    ("requirements/*.txt", _lines),
    # As people misspell it: requirments.txt, requirement.txt.
    ("requirm*.txt", _lines),
    ("requirement.txt", _lines),
    ("runtime.txt", _python_version),
    ("Dockerfile*", _installs),
    ("*.sh", _installs),
    ("[Rr][Ee][Aa][Dd][Mm][Ee]*", _manual),
)
"""Which files are read how; where several pin a version, the first of them decides."""
