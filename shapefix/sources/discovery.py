"""Find the files to read: paths of the command line, and Python files and notebooks in its folders."""

# Paths are plain strings here: Path objects would take longer than reading the folders does.
# ruff: noqa: PTH100, PTH112, PTH113, PTH114, PTH115, PTH116, PTH118, PTH119, PTH120

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import field

from shapefix.diagnostics import Failure
from shapefix.light_dataclasses import dataclass
from shapefix.sources.configuration import Configuration, ConfigurationError, Configurations
from shapefix.sources.gitignore import IgnoreRules, ignored_above
from shapefix.sources.library_copies import copied_library
from shapefix.sources.text import is_in_memory, reason

_SUFFIXES = (".py", ".ipynb")
_APPLE_DOUBLE = "._"
"""Start of the name of a file in which macOS keeps the attributes of another: `._train.py` has no code."""


@dataclass(frozen=True)
class DiscoveredFiles:
    """Files in the order of the given paths; a folder's own files come before those in its subfolders.

    Relative paths stay relative. Every file is listed once, even if symbolic links lead to it.

    outside are symbolic links to files outside of the folders. They are skipped: a repair would change a file
    that the user did not name. copies are folders with the repository of a library, by the library; they are
    skipped, too. unused are ignore files that cannot be used; invalid is the first error of a configuration.
    """

    files: tuple[str, ...]
    failures: tuple[Failure, ...]
    outside: tuple[str, ...] = ()
    unused: tuple[Failure, ...] = ()
    invalid: ConfigurationError | None = None
    copies: tuple[tuple[str, str], ...] = ()


def discover(
    paths: Iterable[str],
    configurations: Configurations,
    *,
    force_exclude: bool = False,
    most: int | None = None,
) -> DiscoveredFiles:
    """Find the files to analyze, at most this many files and folders.

    An explicitly given file is always included, also if it is excluded or has another suffix, unless
    force_exclude or its configuration says otherwise. In folders, *.py and *.ipynb files are included unless
    git or the configuration excludes them. The repository of a library below a folder is left out, unless the
    configuration has an exclude of its own. Links in folders are followed to files in one of the folders.
    Missing and unreadable paths, link loops and invalid configurations become Failures.
    """
    walk = _Walk(configurations, most)
    for given in paths:
        path = os.path.normpath(given) if given else given
        absolute = _real_folder(path)
        if given and (force_exclude or walk.forces_exclude(absolute)) and walk.excludes(absolute):
            continue
        if os.path.isdir(path):
            walk.folder("" if path == os.curdir else path, os.path.realpath(path))
        else:
            walk.named_file(path, absolute)
    return walk.result()


def is_excluded(path: str, configurations: Configurations) -> bool:
    """Check whether the configuration excludes a file, existing or not, by its absolute path.

    An invalid configuration excludes it.
    """
    return _Walk(configurations).excludes(path)


def _real_folder(path: str) -> str:
    """Return the absolute path with links in its folders resolved, so that one file has one path."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


@dataclass
class _Walk:
    """The files found so far."""

    configurations: Configurations
    most: int | None = None
    files: dict[str, str] = field(default_factory=dict)  # absolute path -> path as written
    links: set[str] = field(default_factory=set)  # absolute paths of symbolic links to files
    named: set[str] = field(default_factory=set)  # absolute paths of explicitly given files
    folders: list[str] = field(default_factory=list)  # real paths of the given folders
    failures: dict[str, Failure] = field(default_factory=dict)
    unused: dict[str, Failure] = field(default_factory=dict)  # ignore files
    invalid: ConfigurationError | None = None
    copies: dict[str, tuple[str, str]] = field(default_factory=dict)  # absolute path -> path, library

    def configuration(self, folder: str) -> Configuration | None:
        """Return the configuration of a folder; an invalid one is a failure, and None."""
        try:
            configuration = self.configurations.nearest(folder)
            configuration.excludes(folder)
        except ConfigurationError as error:
            self.invalid = self.invalid or error
            failure = error.failure()
            if failure is None:
                raise
            self.fail(failure.path, failure.message)
            return None
        return configuration

    def forces_exclude(self, absolute: str) -> bool:
        try:
            return self.configurations.nearest(os.path.dirname(absolute)).force_exclude
        except ConfigurationError:
            return False

    def excludes(self, absolute: str) -> bool:
        """Check whether the configuration excludes a path or a folder above it, up to its root."""
        configuration = self.configuration(os.path.dirname(absolute))
        if configuration is None:
            return True
        at = absolute
        while at != configuration.excluding_root and at != os.path.dirname(at):
            if configuration.excludes(at):
                return True
            at = os.path.dirname(at)
        return False

    def _warn(self, failure: Failure) -> None:
        self.unused.setdefault(failure.path, failure)

    def fail(self, path: str, message: str) -> None:
        self.failures.setdefault(path, Failure(path, message))

    def result(self) -> DiscoveredFiles:
        taken = {absolute for absolute in self.files if absolute not in self.links}
        files: list[str] = []
        outside: list[str] = []
        for absolute, path in self.files.items():
            if absolute in self.links:
                target = os.path.realpath(absolute)
                if target in taken:
                    continue
                if absolute not in self.named and not any(_is_inside(target, each) for each in self.folders):
                    outside.append(path)
                    continue
                taken.add(target)
            files.append(path)
        return DiscoveredFiles(
            tuple(files),
            tuple(self.failures.values()),
            tuple(outside),
            tuple(self.unused.values()),
            self.invalid,
            tuple(copy for absolute, copy in self.copies.items() if absolute not in self.folders),
        )

    def named_file(self, path: str, absolute: str) -> None:
        try:
            if not is_in_memory(absolute):
                os.stat(path)
        except (OSError, ValueError) as error:
            self.fail(path, reason(error))
            return
        self.named.add(absolute)
        self._file(absolute, path, os.path.islink(path))

    def _file(self, absolute: str, path: str, is_link: bool) -> None:
        if absolute not in self.files:
            self.files[absolute] = path
            if is_link:
                self.links.add(absolute)

    def folder(self, path: str, absolute: str) -> None:
        """Add the files in a given folder; path is its name as given, "" for the working directory."""
        self.folders.append(absolute)
        # A stack instead of recursion: folders may be nested deeper than Python can recurse.
        pending = [(path, absolute, ignored_above(absolute, self._warn))]
        visited = 0
        while pending and (self.most is None or visited + len(self.files) < self.most):
            visited += 1
            at, absolute_at, ignored = pending.pop()
            pending += reversed(self._entries(at, absolute_at, ignored))

    def _entries(self, path: str, absolute: str, above: IgnoreRules) -> list[tuple[str, str, IgnoreRules]]:
        """Add the files of one folder, and return its subfolders to visit."""
        try:
            with os.scandir(path or os.curdir) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self.fail(path or os.curdir, f"cannot be listed: {reason(error)}")
            return []
        names = frozenset(entry.name for entry in entries)
        ignored = above.inside(absolute, names, self._warn)
        configuration = self.configuration(absolute)
        if configuration is None:
            return []
        if absolute not in self.folders and configuration.setting_layer("exclude") is None:
            library = copied_library(absolute, names)
            if library is not None:
                self.copies[absolute] = path, library
                return []
        excludes = configuration.excludes
        start = f"{path.rstrip(os.sep)}{os.sep}" if path else ""
        absolute_start = f"{absolute.rstrip(os.sep)}{os.sep}"
        folders: list[tuple[str, str, IgnoreRules]] = []
        for entry in entries:
            name = entry.name
            is_folder = _is_folder(entry)
            is_link = entry.is_symlink()
            if not (is_folder or is_link or name.endswith(_SUFFIXES)):
                continue
            if name.startswith(_APPLE_DOUBLE) and not is_folder:
                continue
            full = absolute_start + name
            if excludes(full) or ignored(full, is_folder):
                continue
            if is_folder:
                folders.append((start + name, full, ignored))
            elif is_link:
                self._link(full, start + name)
            elif entry.is_file():
                self._file(full, start + name, is_link=False)
        return folders

    def _link(self, absolute: str, path: str) -> None:
        """Add the target of a symbolic link to a Python file; a broken link is a failure."""
        is_python = path.endswith(_SUFFIXES)
        try:
            is_folder = os.path.isdir(absolute)
            os.stat(absolute)
        except FileNotFoundError:
            # Editors mark an open file with a link ".#name" that leads nowhere.
            if is_python and not os.path.basename(path).startswith(".#"):
                self.fail(path, f"is a symbolic link to {os.readlink(absolute)}, which does not exist")
        except OSError as error:
            if is_python or (error.errno == errno.ELOOP and not absolute.endswith(f"{os.sep}.gitignore")):
                self.fail(path, reason(error))
        else:
            if is_folder:
                target = os.path.realpath(absolute)
                if absolute.startswith(target.rstrip(os.sep) + os.sep):
                    self.fail(path, f"is a symbolic link back to {target}, a folder around it; not followed")
            elif is_python and os.path.isfile(absolute):
                self._file(absolute, path, is_link=True)


def _is_inside(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
