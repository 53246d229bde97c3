"""Find the plugins of other packages: entry points of the groups `shapefix.rules` and `shapefix.library`."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path

from shapefix.light_dataclasses import dataclass

RULES = "shapefix.rules"
"""Group of packages with rules, and with their pages in a folder `pages`."""
LIBRARY = "shapefix.library"
"""Group of modules that register what functions and layers do to values."""
_MESSAGE_LENGTH = 200


@dataclass(frozen=True)
class Plugin:
    """An entry point: its group and name, its module, and its distribution."""

    group: str
    name: str
    module: str
    distribution: str

    @property
    def folder(self) -> Path | None:
        """The folder of the package, or around the module; None without one. Nothing is imported."""
        paths: list[str] | None = None
        for part in self.module.split("."):
            spec = PathFinder.find_spec(part, paths)
            if spec is None:
                return None
            if spec.submodule_search_locations is None:
                return None if spec.origin is None else Path(spec.origin).parent
            paths = list(spec.submodule_search_locations)
        return Path(paths[0]) if paths else None


@dataclass(frozen=True)
class PluginProblem:
    """The reason for not using a plugin, or one of its rules, and the place of the error."""

    path: str
    row: int | None
    message: str


_problems: dict[str, PluginProblem] = {}


def problems() -> tuple[PluginProblem, ...]:
    """The problems of this process so far, each once."""
    return tuple(_problems.values())


@cache
def plugins(group: str) -> tuple[Plugin, ...]:
    """Return the installed plugins of a group, by the names of their modules."""
    found: dict[str, Plugin] = {}
    here = _current_folder()
    for folder in map(Path, filter(None, sys.path)):
        # The current folder may be a checked repository, whose code is never imported.
        for each in () if folder == here else _declared_in(folder):
            if each.group == group:
                found.setdefault(each.module, each)
    return tuple(found[module] for module in sorted(found))


def load(group: str) -> None:
    """Import the modules of a group; an exception is a problem of its plugin."""
    for plugin in plugins(group):
        if is_broken(plugin):
            continue
        try:
            import_module(plugin.module)
        except (Exception, SystemExit) as error:
            note_error(plugin, f"plugin {plugin.distribution} is not used", error)


def note_error(plugin: Plugin, what: str, error: BaseException) -> None:
    """Note an exception of a plugin, at the last line of the plugin in its traceback."""
    stack = traceback.extract_tb(error.__traceback__)
    folder = plugin.folder
    own = [frame for frame in stack if folder is not None and Path(frame.filename).is_relative_to(folder)]
    path, row = (own[-1].filename, own[-1].lineno) if own else (str(folder or plugin.module), None)
    first = (str(error).splitlines() or [""])[0][:_MESSAGE_LENGTH]
    shown = f"{type(error).__name__}: {first}" if first else type(error).__name__
    note_problem(plugin, PluginProblem(path, row, f"{what}: {shown}"))


def note_problem(plugin: Plugin, problem: PluginProblem) -> None:
    """Note the first problem of a distribution; others may follow from it."""
    _problems.setdefault(plugin.distribution, problem)


def is_broken(plugin: Plugin) -> bool:
    """Check whether a problem of the plugin's distribution was noted."""
    return plugin.distribution in _problems


def source_files() -> Iterator[Path]:
    """Yield the files of all plugins: results depend on them."""
    for group in (RULES, LIBRARY):
        for plugin in plugins(group):
            if plugin.folder is not None:
                yield from plugin.folder.rglob("*.py")


def _current_folder() -> Path | None:
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _declared_in(folder: Path) -> Iterator[Plugin]:
    """Yield the plugins of the distributions in a folder of sys.path.

    importlib.metadata takes longer to import than this reads.
    """
    try:
        names = [path for path in folder.iterdir() if path.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return
    for path in names:
        try:
            text = (path / "entry_points.txt").read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if "shapefix." in text:
            yield from _entries(text, path.name.rpartition(".")[0].replace("-", " ", 1))


def _entries(text: str, distribution: str) -> Iterator[Plugin]:
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif group in (RULES, LIBRARY) and "=" in line and not line.startswith("#"):
            name, _, module = (part.strip() for part in line.partition("="))
            yield Plugin(group, name, module.partition(":")[0].strip(), distribution)
