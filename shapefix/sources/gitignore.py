"""Find ignored paths by git's rules: nested .gitignore files, from the root of the repository down."""

# Paths are plain strings here: this runs for every entry of every folder.
# ruff: noqa: PTH118, PTH120

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import field

from shapefix.diagnostics import Failure
from shapefix.light_dataclasses import dataclass
from shapefix.sources.text import Unreadable, read_settings
from shapefix.sources.wildmatch import expression, literal_length

MOST_WILDCARDS = 10_000
"""Patterns with wildcards in one file; compiling more of them takes seconds."""

_Index = dict[str, int]


@dataclass(frozen=True)
class WildcardPattern:
    """A pattern with wildcards, for names or for paths; index is its line among all patterns."""

    index: int
    expression: re.Pattern[str]
    is_path: bool
    only_folders: bool


@dataclass
class IgnoreFile:
    """The patterns of one ignore file; folder ends in a separator.

    ignores has the decision of each pattern, in the order of the lines; of those that match, the last one
    decides. names, folder_names, paths and folder_paths map literal patterns to their last index, and
    wildcards are the other patterns, the last one first.
    """

    folder: str
    ignores: list[bool] = field(default_factory=list)
    names: _Index = field(default_factory=dict)
    folder_names: _Index = field(default_factory=dict)
    paths: _Index = field(default_factory=dict)
    folder_paths: _Index = field(default_factory=dict)
    wildcards: tuple[WildcardPattern, ...] = ()
    any_name: re.Pattern[str] | None = None
    any_path: re.Pattern[str] | None = None

    def decide(self, path: str, is_folder: bool) -> bool | None:
        """Check whether this file ignores (True) or re-includes (False) a path; None if it is silent."""
        relative = path[len(self.folder) :].replace(os.sep, "/")
        if not relative.isascii():
            # git compares bytes.
            relative = os.fsencode(relative).decode("latin-1")
        name = relative[relative.rfind("/") + 1 :]
        best = max(self.names.get(name, -1), self.paths.get(relative, -1))
        if is_folder:
            best = max(best, self.folder_names.get(name, -1), self.folder_paths.get(relative, -1))
        # Nearly every path matches nothing, and two expressions are faster than one for each line.
        is_name = self.any_name is not None and self.any_name.fullmatch(name)
        is_path = self.any_path is not None and self.any_path.fullmatch(relative)
        for pattern in self.wildcards if is_name or is_path else ():
            if pattern.index < best:
                break
            if pattern.only_folders and not is_folder:
                continue
            if pattern.expression.fullmatch(relative if pattern.is_path else name):
                best = pattern.index
                break
        return None if best < 0 else self.ignores[best]


@dataclass(frozen=True)
class IgnoreRules:
    """The ignore files in effect in one folder, the outermost first."""

    files: tuple[IgnoreFile, ...] = ()

    def __call__(self, path: str, is_folder: bool) -> bool:
        """Check whether git ignores this absolute path, assuming that it does not ignore its folder."""
        for file in reversed(self.files):
            decision = file.decide(path, is_folder)
            if decision is not None:
                return decision
        return False

    def inside(self, folder: str, names: frozenset[str], warn: Warn) -> IgnoreRules:
        """Return the rules inside a folder with these names, given the rules of its parent.

        A folder that is itself a repository starts without rules.
        """
        found = IgnoreRules() if ".git" in names else self
        if ".git" in names:
            found = found._with(f"{folder}{os.sep}.git{os.sep}info{os.sep}exclude", folder, warn)
        if ".gitignore" in names:
            found = found._with(f"{folder}{os.sep}.gitignore", folder, warn)
        return found

    def _with(self, path: str, folder: str, warn: Warn) -> IgnoreRules:
        try:
            file = _read_ignore_file(path, folder)
        except Unreadable as error:
            warn(Failure(path, f"{error.message}; its patterns are not used"))
            return self
        return IgnoreRules((*self.files, file)) if file else self


Warn = Callable[[Failure], None]
"""Gets each ignore file that cannot be used, with the reason."""


def ignored_above(folder: str, warn: Warn) -> IgnoreRules:
    """Read the ignore files of the folders above an absolute folder, up to the root of the repository.

    There are none outside a repository and for its root. If git ignores the folder itself, they are not used:
    the folder was given explicitly.
    """
    above: list[tuple[str, frozenset[str]]] = []
    at = folder
    while not os.path.lexists(os.path.join(at, ".git")):
        parent = os.path.dirname(at)
        if parent == at:
            return IgnoreRules()
        at = parent
        present = {name for name in (".git", ".gitignore") if os.path.lexists(os.path.join(at, name))}
        above.append((at, frozenset(present)))
    ignored = IgnoreRules()
    for index in range(len(above) - 1, -1, -1):
        ignored = ignored.inside(*above[index], warn)
        below = above[index - 1][0] if index else folder
        if ignored(below, is_folder=True):
            return IgnoreRules()
    return ignored


def _read_ignore_file(path: str, folder: str) -> IgnoreFile | None:
    """Read the patterns of an ignore file; None if there are none. Raises Unreadable."""
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISLNK(mode) and path.endswith(f"{os.sep}.gitignore"):
        raise Unreadable("is a symbolic link, which git does not follow either")
    if stat.S_ISDIR(mode):
        return None
    return parse_ignore_file(read_settings(path), folder)


def parse_ignore_file(data: bytes, folder: str) -> IgnoreFile | None:
    """Parse the content of an ignore file; None without any pattern. Raises Unreadable for too many."""
    file = IgnoreFile(folder.rstrip(os.sep) + os.sep)
    wildcards: list[tuple[str, WildcardPattern]] = []
    for line in data.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n"):
        # git reads strings of C.
        _parse_line(line.removesuffix("\r").partition("\0")[0], file, wildcards)
    if len(wildcards) > MOST_WILDCARDS:
        raise Unreadable(f"has more than {MOST_WILDCARDS:,} patterns with wildcards")
    if not file.ignores:
        return None
    file.wildcards = tuple(pattern for _, pattern in reversed(wildcards))
    file.any_name = _any_of([written for written, pattern in wildcards if not pattern.is_path])
    file.any_path = _any_of([written for written, pattern in wildcards if pattern.is_path])
    return file


def _parse_line(line: str, file: IgnoreFile, wildcards: list[tuple[str, WildcardPattern]]) -> None:
    """Add one line; comments, and patterns without any match, are left out."""
    if line.startswith("#"):
        return
    line = _without_trailing_spaces(line)
    written = line.removeprefix("!")
    only_folders = written.endswith("/")
    written = written.removesuffix("/")
    is_path = "/" in written
    rooted = written.removeprefix("/")
    if not rooted:
        return
    literal = literal_length(rooted)
    if literal == len(rooted):
        names = file.folder_names if only_folders else file.names
        paths = file.folder_paths if only_folders else file.paths
        (paths if is_path else names)[rooted] = len(file.ignores)
    elif len(wildcards) <= MOST_WILDCARDS:
        matching = expression(rooted, literal if is_path else 0)
        if matching is None:
            return
        compiled = re.compile(matching, re.DOTALL)
        wildcards.append((matching, WildcardPattern(len(file.ignores), compiled, is_path, only_folders)))
    file.ignores.append(line[:1] != "!")


def _without_trailing_spaces(line: str) -> str:
    """Remove spaces at the end, unless a backslash quotes them."""
    kept = line.rstrip(" ")
    if len(kept) == len(line):
        return line
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return kept + " " if backslashes % 2 else kept


def _any_of(patterns: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(patterns), re.DOTALL) if patterns else None
