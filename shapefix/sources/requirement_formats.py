"""Read the bounds on libraries in the text of a requirements, lock or environment file, and in commands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

from shapefix.sources.bounded_toml import parse_toml
from shapefix.sources.required_libraries import PYTHON, REQUIRED, RequiredLibrary
from shapefix.sources.versions import LONGEST

_Libraries = Sequence[RequiredLibrary]
Reader = Callable[[str, _Libraries], Iterable[tuple[RequiredLibrary, str]]]
"""A function of a text, and of the libraries in it, to their bounds: `==4.57.6`, `>=4.30,<5`."""

_MOST = 100
"""Bounds on a library that are read from one file."""
_MOST_LINES = 1_000
"""Lines with the name of a library that are looked at in one file."""
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
def _conda_package(package: RequiredLibrary) -> re.Pattern[str]:
    return re.compile(rf"/{package.pattern()}-(\d+(?:\.\d+)+)-[^/\s]*\.(?:tar\.bz2|conda)", re.IGNORECASE)


@cache
def _lock_entry(package: RequiredLibrary) -> re.Pattern[str]:
    # Poetry 1.0 wrote the keys in the order of the alphabet.
    keys = r"(?:^[\w-]+\s*=[^\n]*\n)*?"
    return re.compile(
        rf'^\[\[package\]\]\s*{keys}^name\s*=\s*"{package.pattern()}"\n{keys}^version\s*=\s*"([^"]+)"',
        re.MULTILINE,
    )


@cache
def _quoted_requirement(package: RequiredLibrary) -> re.Pattern[str]:
    return re.compile(rf"""["']({package.pattern()}\b[^"'\n]*)["']""", re.IGNORECASE)


def bounds_in(text: str, read: Reader) -> Mapping[str, list[str]]:
    """Return the bounds on each library in a file."""
    libraries = [each for each in REQUIRED if re.search(each.pattern(), text, re.IGNORECASE)]
    found: dict[str, list[str]] = {each.key: [] for each in libraries}
    if libraries:
        try:
            for library, bounds in read(text, libraries):
                if len(bounds) <= LONGEST and len(found[library.key]) < _MOST:
                    found[library.key].append(bounds)
        except (ValueError, RecursionError):
            # Other tools report malformed files.
            pass
    return found


def _bounds(requirement: str, package: RequiredLibrary) -> Iterator[str]:
    """The bounds in a requirement, or in a line starting with one."""
    found = _requirement(package).match(" ".join(requirement.split()))
    tag = _tag(package).search(requirement)
    if found is not None:
        yield found[1].strip().rstrip(",")
    elif tag is not None:
        yield f"=={tag[1]}"


def _lines(text: str, libraries: _Libraries) -> Iterator[tuple[RequiredLibrary, str]]:
    """requirements.txt: a requirement in each line, and perhaps its hashes, or a comment.

    Also what `conda list` writes there: `pytorch=1.4.0=py3.7_0`, and with `--explicit` addresses of packages.
    """
    for library in libraries:
        for line in _lines_with(text, library):
            package = _conda_package(library).search(line)
            if package is not None:
                yield library, f"=={package[1]}"
            for bounds in _of_conda(line.partition(" #")[0], library):
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


def installs(text: str, libraries: _Libraries) -> Iterator[tuple[RequiredLibrary, str]]:
    """Commands in a notebook, a Dockerfile, a script or a manual: `pip install transformers==4.30`."""
    if PYTHON in libraries:
        yield from ((PYTHON, f"=={version}.*") for version in islice(_IMAGE.findall(text), _MOST))
    for command in islice(_INSTALLED.finditer(re.sub(r"\\\r?\n", " ", text)), _MOST_LINES):
        for word in command[1].split():
            requirement = word.strip("\"'`")
            for library in libraries:
                yield from ((library, bounds) for bounds in _of_conda(requirement, library))


_EXPORTED = re.compile(
    r"^[ \t]*(?:#[ \t]*[!%]|get_ipython\(\)\.system\([\"'])[ \t]*((?:pip|conda|uv|mamba)\b.*)", re.MULTILINE
)
"""A command of a notebook as a script has it: in a comment, or as an argument of IPython."""


def exported_installs(text: str, libraries: _Libraries) -> Iterator[tuple[RequiredLibrary, str]]:
    """Commands of a notebook exported as a script."""
    commands = islice(_EXPORTED.findall(text), _MOST_LINES)
    yield from installs("\n".join(each.rstrip("\"')") for each in commands), libraries)


_OR_LATER = r"\+|\s*(?:\)|,)?\s*(?:or|and)\s+(?:later|newer|above|higher|up)"


_LINK = r"(?:\]\([^)\s]{1,200}\))?"
"""End of a link of Markdown."""
_BETWEEN = r"`*|:(\s\uff1a\uff08"
"""Characters between a name and its version in prose; the last two are a wide colon and bracket."""


@cache
def _tested_with(package: RequiredLibrary) -> re.Pattern[str]:
    """Return the pattern of a library with a version in prose: `PyTorch Lightning 1.5`, `torch >= 1.8`."""
    name = package.pattern().replace("[-_.]", "[-_. ]")
    return re.compile(
        rf"(?<![\w/.-]){name}{_LINK}[{_BETWEEN}]*(>=|==?|~=|v)?\s*(\d+\.\d+)(?:\.\d+)*({_OR_LATER})?",
        re.IGNORECASE,
    )


def _manual(text: str, libraries: _Libraries) -> Iterator[tuple[RequiredLibrary, str]]:
    """README: its commands, and the versions named by the authors."""
    yield from installs(text, libraries)
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
            for dependency in _named(_at(content, group), library):
                for version in _strings(_at(dependency, "version")):
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
            for dependency in _named(group, library):
                yield from ((library, bounds) for bounds in _poetry_bounds(dependency))


def _named(group: Any, library: RequiredLibrary) -> Iterator[Any]:
    """Yield the entries of a library: `pytorch_lightning` and `PyTorch.Lightning` are one name."""
    for name, entry in group.items() if isinstance(group, dict) else ():
        if isinstance(name, str) and re.sub(r"[-_.]+", "-", name).lower() in library.names:
            yield entry


_ANY = ">=0"
"""Bounds that every version is within."""


def _poetry_bounds(dependency: Any) -> Iterator[str]:
    for one in dependency if isinstance(dependency, list) else [dependency]:
        if isinstance(one, dict) and "git" in one:
            # A revision of any age.
            yield _ANY
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


_VERSION_OF_MODULE = re.compile(r"""^__version__\s*=\s*["'](\d+(?:\.\d+)*)""", re.MULTILINE)


def _copied(key: str) -> Reader:
    """A library's own source as a part of the project, with its version."""

    def read(text: str, libraries: _Libraries) -> Iterator[tuple[RequiredLibrary, str]]:
        found = _VERSION_OF_MODULE.search(text)
        for library in libraries if found is not None else ():
            if library.key == key and found is not None:
                yield library, f"=={found[1]}"

    return read


COPIES = {
    f"{folder}{key}/__init__.py": key
    for key in ("transformers", "peft", "trl")
    for folder in ("", "src/", f"{key}/src/")
}
"""Files of a copy of a library in a project, with the key of the library."""
LISTS_OF_PACKAGES = ("req", "freeze", "packages", "dependencies")
"""Words in the names of other texts with requirements: `req.txt`, `pip_freeze.txt`."""
READERS: tuple[tuple[str, Reader], ...] = (
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
    *((f"*{word}*.txt", _lines) for word in LISTS_OF_PACKAGES),
    ("runtime.txt", _python_version),
    ("Dockerfile*", installs),
    ("*.sh", installs),
    *((name, _copied(key)) for name, key in COPIES.items()),
    ("[Rr][Ee][Aa][Dd][Mm][Ee]*", _manual),
)
"""Which files are read how; where several pin a version, the first of them decides."""
