"""Find the importers of files in a project, direct and indirect ones, without parsing them."""

# Paths are plain strings here: every import of every file comes through.
# ruff: noqa: PTH119, PTH122

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from shapefix.light_dataclasses import dataclass
from shapefix.sources.project import PathProbes, Project
from shapefix.sources.relevance import mentions_library, mentions_training

MOST_IMPORTERS = 10
MOST_BYTES = 200_000
"""How many importers are run for the given files of one project, and how large they are together."""
MOST_SEARCHED = 5_000
"""How many files and folders of a project are searched for imports."""

_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(?P<dots>\.*)[ \t]*(?P<base>[\w.]*)[ \t]+import\b[ \t]*"
    rb"(?P<names>\([^)]*\)|(?:\\\r?\n|[^\n])*)"
    rb"|import[ \t]+(?P<modules>(?:\\\r?\n|[^\n])*))",
    re.MULTILINE,
)
_COMMENT = re.compile(rb"#[^\n]*")
_NAME = re.compile(rb"[\w.]+")


@dataclass(frozen=True)
class ImportStatement:
    """An import of a module: level counts the dots of `from ..module import name`."""

    level: int
    module: str
    names: tuple[str, ...] = ()


def importers(
    project: Project, given: Collection[str], files: Iterable[str], read: Callable[[str], bytes | None]
) -> tuple[str, ...]:
    """Return the direct and indirect importers of the given files, the best ones first.

    Scripts that train or evaluate come before other files, then those that are fewer imports away. Files
    without torch are left out. All paths are absolute; read returns None for an unreadable file.
    """
    return importers_at(distances(project, given, references_of(files, read)), given, read)


def importers_at(
    distance: Mapping[str, int], given: Collection[str], read: Callable[[str], bytes | None]
) -> tuple[str, ...]:
    """Return the importers of the given files as `importers` does, by their distance in imports."""
    return tuple(_chosen({path: away for path, away in distance.items() if path not in given}, read))


def references_of(
    files: Iterable[str], read: Callable[[str], bytes | None]
) -> dict[str, tuple[ImportStatement, ...]]:
    """Return the imports of the files with torch, by file; read returns None for an unreadable file."""
    references: dict[str, tuple[ImportStatement, ...]] = {}
    for path in files:
        data = read(path)
        # Without torch a file neither makes tensors nor passes on the names of files that do.
        if data is not None and (mentions_library(data) or path.endswith("__init__.py")):
            references[path] = tuple(import_statements(data))
    return references


def distances(
    project: Project, given: Collection[str], references: Mapping[str, tuple[ImportStatement, ...]]
) -> dict[str, int]:
    """Return the distance in imports of the given files and of their importers."""
    distance = dict.fromkeys(given, 0)
    frontier = set(given)
    while frontier:
        words = {_word(path) for path in frontier}
        found = {
            path
            for path, imported in references.items()
            if path not in distance
            and any(_imports(project, path, each, words, frontier) for each in imported)
        }
        distance.update(dict.fromkeys(found, 1 + max(distance.values(), default=0)))
        frontier = found
    return distance


def _chosen(distance: Mapping[str, int], read: Callable[[str], bytes | None]) -> Iterator[str]:
    """Yield the importers to run, given by their distance in imports."""
    texts = {path: read(path) or b"" for path in distance if not path.endswith("__init__.py")}
    trains = {path for path, data in texts.items() if mentions_training(data)}
    left = MOST_BYTES
    best = sorted(texts, key=lambda path: (path not in trains, distance[path], path))
    for number, path in enumerate(best[:MOST_IMPORTERS]):
        left -= len(texts[path])
        if left < 0 and number:
            return
        yield path


def _imports(
    project: Project, path: str, reference: ImportStatement, words: set[str], wanted: set[str]
) -> bool:
    """Check whether an import statement in the file at path loads one of the wanted files.

    words are their module names: other statements are dismissed without a look at the file system.
    """
    parts = (*reference.module.split("."), *reference.names)
    if words.isdisjoint(parts) and not (reference.level and not reference.module):
        return False
    dotted = project.resolve(path, reference.level, reference.module)
    if dotted is None:
        return False
    probes = PathProbes()
    loaded = {project.locate(dotted, path, probes)}
    loaded |= {project.locate(f"{dotted}.{name}", path, probes) for name in reference.names if name in words}
    return not (loaded | probes.found).isdisjoint(wanted)


def import_statements(data: bytes) -> Iterator[ImportStatement]:
    """Yield the imports in a source text. A line in a docstring may look like one; it does no harm."""
    for match in _IMPORT.finditer(data):
        if match["modules"] is not None:
            for part in _COMMENT.sub(b"", match["modules"]).split(b","):
                name = _NAME.search(part)
                if name is not None:
                    yield ImportStatement(0, name[0].decode("utf-8", "replace"))
            continue
        listed = _COMMENT.sub(b"", match["names"]).strip(b"()").split(b",")
        names = tuple(found[0].decode("utf-8", "replace") for found in map(_NAME.search, listed) if found)
        yield ImportStatement(len(match["dots"]), match["base"].decode("utf-8", "replace"), names)


def is_importable(path: str) -> bool:
    """Check whether an import statement can name the file at path."""
    return path.endswith(".py") and _word(path).isidentifier()


def _word(path: str) -> str:
    """Return the last part of the module name of the file at path."""
    folder, name = os.path.split(path)
    return os.path.basename(folder) if name == "__init__.py" else os.path.splitext(name)[0]
