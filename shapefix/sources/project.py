"""Resolve module names to files from the folders alone; nothing is imported."""

# Paths are plain strings here: every import of every file comes through.
# ruff: noqa: PTH100, PTH112, PTH113, PTH118, PTH119, PTH120, PTH122, PTH206, PTH208, PTH202

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from shapefix.light_dataclasses import dataclass
from shapefix.sources.library_copies import copied_library
from shapefix.sources.relevance import LIBRARIES

_ROOT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "shapefix.toml")
_LISTS_OF_PACKAGES = ("requirements.txt", "environment.yml", "environment.yaml", "Pipfile")
"""Files of a root, too, but of parts of a project as well."""


@dataclass(frozen=True)
class PathProbes:
    """Absolute paths affecting results: found files and missing paths.

    A result stays valid as long as the found files exist and the missing paths do not.
    """

    found: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)

    def update(self, other: PathProbes) -> None:
        """Add the paths of another one."""
        self.found.update(other.found)
        self.missing.update(other.missing)


_OTHER_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "venv", "build", "dist"})


def files_below(root: str) -> Iterator[str]:
    """Yield all files of a project, in a fixed order.

    Those of environments, caches, builds and copied repositories of libraries are left out.
    """
    for folder, folders, names in os.walk(root):
        if folder != root and copied_library(folder, {*folders, *names}):
            folders.clear()
            continue
        folders[:] = sorted(each for each in folders if each not in _OTHER_FOLDERS and each[0] != ".")
        yield from (os.path.join(folder, name) for name in sorted(names))


def project_root(path: str, otherwise: str | None = None) -> str:
    """Return the project folder of the file or folder at path, as an absolute path.

    This is the root of the git repository; outside of one, the nearest folder above with a pyproject.toml or
    setup file; without any, the current folder if it is above and lists packages, or else the folder given as
    otherwise, or the file's own.
    """
    absolute = os.path.abspath(path)
    start = absolute if os.path.isdir(absolute) else os.path.dirname(absolute)
    nearest: str | None = None
    at = start
    while not os.path.lexists(os.path.join(at, ".git")):
        if nearest is None and any(os.path.isfile(os.path.join(at, name)) for name in _ROOT_FILES):
            nearest = at
        parent = os.path.dirname(at)
        if parent == at:
            return nearest or _root_above(otherwise or start)
        at = parent
    return at


def _root_above(folder: str) -> str:
    """Return the current folder if it is above and lists packages, else the folder itself."""
    try:
        current = Path.cwd()
    except OSError:  # it was removed
        return folder
    lists = any((current / name).is_file() for name in _LISTS_OF_PACKAGES)
    return str(current) if lists and Path(os.path.abspath(folder)).is_relative_to(current) else folder


class Project:
    """The modules below root, as the files there would import them.

    Folders are listed once and results are cached: create a new Project for a new run. Paths are absolute.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self._names: dict[str, frozenset[str] | None] = {}
        self._search: dict[str, list[str]] = {}
        self._answers: dict[tuple[str, str], tuple[str | None, PathProbes]] = {}

    def locate(self, module: str, importing_path: str, probes: PathProbes | None = None) -> str | None:
        """Return the file loaded by `import module` in importing_path; for a package, its __init__.py.

        None for the standard library, installed libraries, and namespace packages, which have no file. The
        paths that the result depends on are added to probes, also for cached results.
        """
        top = module.partition(".")[0]
        if top in sys.stdlib_module_names:
            return None
        key = (os.path.dirname(importing_path), module)
        answer = self._answers.get(key)
        if answer is None:
            seen = PathProbes()
            answer = self._answers[key] = (self._find(module.split("."), importing_path, seen), seen)
        if probes is not None:
            probes.update(answer[1])
        return answer[0]

    def resolve(self, importing_path: str, level: int, module: str | None) -> str | None:
        """Return the absolute name of a module: level counts the dots of `from ..module import name`.

        None if the dots lead out of the project, or the name is empty.
        """
        if level == 0:
            return module or None
        parts = self.module_name(importing_path).split(".")
        if os.path.basename(importing_path) != "__init__.py":
            parts.pop()
        if level - 1 > len(parts):
            return None
        parts = parts[: len(parts) - (level - 1)]
        if module:
            parts.append(module)
        return ".".join(parts) or None

    def module_name(self, path: str) -> str:
        """Return the dotted name of the file at path: `pkg.model` for pkg/model.py, `pkg` for its __init__.

        Inside packages the name starts at the outermost one. A file in a plain folder has its name from the
        project's root (or from a src folder), or its bare name where a folder between cannot be imported.
        """
        folder, file = os.path.split(path)
        base = self._package_base(folder)
        if base == folder:
            base = self._namespace_base(folder)
        parts = os.path.relpath(folder, base).split(os.sep) if folder != base else []
        if file != "__init__.py":
            parts.append(os.path.splitext(file)[0])
        return ".".join(parts)

    def _package_base(self, folder: str) -> str:
        """Return the parent of the outermost regular package around folder; else folder itself."""
        while "__init__.py" in (self._listing(folder) or ()):
            parent = os.path.dirname(folder)
            if parent == folder:
                break
            folder = parent
        return folder

    def _namespace_base(self, folder: str) -> str:
        """Return the base folder for module names in a plain folder."""
        within = folder == self.root or folder.startswith(self.root.rstrip(os.sep) + os.sep)
        if not within:
            return folder
        at = folder
        while at != self.root and os.path.basename(at) != "src":
            if not os.path.basename(at).isidentifier():
                return folder
            at = os.path.dirname(at)
        return at

    def _folders(self, folder: str) -> list[str]:
        """Return the folders to search for the imports of a file in folder, in order.

        First as `python train.py` does, in the script's own folder, or above the package that the file is in.
        Then, because people run from anywhere, in the folders above up to root, with the src folder of each.
        A package's own folder comes last: some run the scripts in it, or put it on the path.
        """
        known = self._search.get(folder)
        if known is None:
            base = self._package_base(folder)
            known = [base]
            at = base
            while at != self.root and at.startswith(self.root.rstrip(os.sep) + os.sep):
                at = os.path.dirname(at)
                known.append(at)
            if self.root not in known:
                known.append(self.root)
            known = [
                each
                for above in known
                for each in (above, os.path.join(above, "src"))
                if each == above or "src" in (self._listing(above) or ())
            ]
            if folder not in known:
                known.append(folder)
            self._search[folder] = known
        return known

    def _find(self, parts: list[str], importing_path: str, probes: PathProbes) -> str | None:
        folder = os.path.dirname(importing_path)
        folders = self._folders(folder)
        in_package = "__init__.py" in (self._listing(folder) or ())
        is_library = parts[0] in LIBRARIES
        if is_library and in_package and folders[-1] == folder:
            # `import datasets` beside pkg/datasets.py, in pkg, is the library.
            folders = folders[:-1]
        for each in folders:
            found = self._find_below(each, parts, probes, plain_folders=not is_library)
            if found is not None:
                probes.found.add(found)
                if len(parts) == 1 and in_package and _is_empty_package_around(found, folder):
                    # `from models import Net` in models/gan/train.py, run beside models/gan/models.py.
                    return self._find_below(folder, parts, probes, plain_folders=False) or found
                return found
        return None

    def _find_below(
        self, folder: str, parts: list[str], probes: PathProbes, plain_folders: bool
    ) -> str | None:
        """Return the file of a dotted name below a folder; plain_folders allows namespace packages.

        They are not allowed for the name of a library: an installed package precedes a folder of data.
        """
        for index, part in enumerate(parts):
            is_last = index == len(parts) - 1
            names = self._listing(folder) or frozenset()
            package = f"{folder}{os.sep}{part}"
            inside = self._listing(package) if part in names else None
            if inside is not None and "__init__.py" in inside:
                package_file = f"{package}{os.sep}__init__.py"
                if is_last:
                    return package_file
                probes.found.add(package_file)
                folder = package
                continue
            probes.missing.add(package if inside is None else f"{package}{os.sep}__init__.py")
            module = f"{package}.py"
            if f"{part}.py" in names and os.path.isfile(module):
                if is_last:
                    return module
                probes.found.add(module)
                return None
            probes.missing.add(module)
            if inside is None or is_last or not plain_folders:
                return None
            folder = package
        return None

    def _listing(self, folder: str) -> frozenset[str] | None:
        """Return the names in a folder; None if it is not a folder or cannot be listed."""
        if folder not in self._names:
            try:
                self._names[folder] = frozenset(os.listdir(folder))
            except (OSError, ValueError):
                self._names[folder] = None
        return self._names[folder]


def _is_empty_package_around(found: str, folder: str) -> bool:
    """Whether a file is the empty `__init__.py` of a package with a folder below it."""
    package, name = os.path.split(found)
    return name == "__init__.py" and folder.startswith(package + os.sep) and not os.path.getsize(found)
