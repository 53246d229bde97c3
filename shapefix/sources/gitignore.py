"""Find ignored paths by git's rules: nested .gitignore files, from the root of the repository down."""

# Paths are plain strings here: this runs for every entry of every folder.
# ruff: noqa: PTH118, PTH120, PTH123

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from shapefix.sources.wildmatch import expression


@dataclass(frozen=True)
class IgnorePattern:
    """One pattern of an ignore file, for names or for paths; folders end in a slash."""

    expression: re.Pattern[str]
    is_path: bool
    ignores: bool


@dataclass(frozen=True)
class IgnoreFile:
    """The patterns of one ignore file, last line first; folder ends in a separator."""

    folder: str
    patterns: tuple[IgnorePattern, ...]
    any_name: re.Pattern[str]
    any_path: re.Pattern[str]

    def decide(self, path: str, is_folder: bool) -> bool | None:
        """Check whether this file ignores (True) or re-includes (False) a path; None if it is silent."""
        relative = path[len(self.folder) :].replace(os.sep, "/")
        name = relative[relative.rfind("/") + 1 :]
        if is_folder:
            relative += "/"
            name += "/"
        # Nearly every path matches nothing, and two expressions are faster than one for each line.
        if not (self.any_name.fullmatch(name) or self.any_path.fullmatch(relative)):
            return None
        for pattern in self.patterns:
            if pattern.expression.fullmatch(relative if pattern.is_path else name):
                return pattern.ignores
        return None


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

    def inside(self, folder: str, names: frozenset[str]) -> IgnoreRules:
        """Return the rules inside a folder with these names, given the rules of its parent.

        A folder that is itself a repository starts without rules.
        """
        found = IgnoreRules() if ".git" in names else self
        if ".git" in names:
            found = found._with(f"{folder}{os.sep}.git{os.sep}info{os.sep}exclude", folder)
        if ".gitignore" in names:
            found = found._with(f"{folder}{os.sep}.gitignore", folder)
        return found

    def _with(self, path: str, folder: str) -> IgnoreRules:
        file = _read_ignore_file(path, folder)
        return IgnoreRules((*self.files, file)) if file else self


def ignored_above(folder: str) -> IgnoreRules:
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
        ignored = ignored.inside(*above[index])
        below = above[index - 1][0] if index else folder
        if ignored(below, is_folder=True):
            return IgnoreRules()
    return ignored


def _read_ignore_file(path: str, folder: str) -> IgnoreFile | None:
    """Read the patterns of an ignore file; None if there are none, or git could not read the file either."""
    try:
        with open(path, "rb") as file:
            lines = file.read().decode("utf-8-sig", "surrogateescape").split("\n")
    except OSError:
        return None
    patterns = [pattern for line in reversed(lines) if (pattern := _pattern(line.removesuffix("\r")))]
    if not patterns:
        return None
    return IgnoreFile(
        folder.rstrip(os.sep) + os.sep,
        tuple(patterns),
        _any_of([each for each in patterns if not each.is_path]),
        _any_of([each for each in patterns if each.is_path]),
    )


def _pattern(line: str) -> IgnorePattern | None:
    """Parse one line; None for comments and patterns without any match."""
    if line.startswith("#"):
        return None
    # Spaces at the end count after a backslash.
    line = re.sub(r"(?<!\\)((?:\\\\)*(?:\\ )?) *\Z", r"\1", line)
    ignores = not line.startswith("!")
    written = line.removeprefix("!")
    only_folders = written.endswith("/")
    written = written.removesuffix("/")
    is_path = "/" in written
    matching = expression(written.removeprefix("/"))
    if not written or matching is None:
        return None
    # `foo/*` is about what is in foo, so what it matches never ends in the slash itself.
    matching += r"(?<!/)/" if only_folders else r"(?<!/)/?"
    return IgnorePattern(re.compile(matching, re.DOTALL), is_path, ignores)


def _any_of(patterns: list[IgnorePattern]) -> re.Pattern[str]:
    return re.compile("|".join(each.expression.pattern for each in patterns) or "(?!)", re.DOTALL)
