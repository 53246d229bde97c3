"""Lines changed since a commit, by git: for `shapefix check --changed`."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH100, PTH118, PTH120

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from shapefix.light_dataclasses import dataclass
from shapefix.sources.text import Unreadable, rows_of, source_of

# A repository from elsewhere may name programs to run in its own configuration.
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-optional-locks")

_OF_A_HOOK = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_WORK_TREE")


class ComparisonFailed(Exception):
    """The files cannot be compared with a commit; the message has the reason."""


@dataclass(frozen=True)
class CommitComparison:
    """The files of a repository different from a commit, by absolute path.

    A value is the former path in the repository, None for a new file.
    """

    root: str
    commit: str
    files: Mapping[str, str | None]

    def changed_rows(self, path: str, text: str) -> frozenset[int]:
        """Return the changed rows of a file with this text, and those next to a deleted row.

        Rows of a notebook are those of its code. Raises ComparisonFailed.
        """
        if path not in self.files:
            return frozenset()
        after = rows_of(text)
        former = self.files[path]
        if former is None:
            return frozenset(range(1, len(after) + 1))
        data = _git(self.root, "cat-file", "blob", f"{self.commit}:{former}")
        try:
            before = rows_of(source_of(path, data).text)
        except Unreadable:
            return frozenset(range(1, len(after) + 1))
        rows: set[int] = set()
        for kind, _, _, first, last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if kind == "delete":
                rows |= {first, first + 1}
            elif kind != "equal":
                rows.update(range(first + 1, last + 1))
        return frozenset(rows)


def compare(path: str, reference: str) -> CommitComparison:
    """Compare the repository around a path with its last common commit with a reference.

    Raises ComparisonFailed.
    """
    folder = path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))  # noqa: PTH112
    root = os.path.normpath(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel").removesuffix(b"\n")))
    _git(
        root,
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        f"{reference}^{{commit}}",
        about=reference,
    )
    base = _git(root, "merge-base", "HEAD", reference, about=reference).decode().strip()
    changes = _git(root, "diff", "--name-status", "--find-renames", "--no-ext-diff", "-z", base)
    files = _changes(root, changes.decode("utf-8", "surrogateescape").split("\0"))
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z").split(b"\0")
    files |= {_absolute(root, os.fsdecode(name)): None for name in new if name}
    return CommitComparison(root, base, files)


def _changes(root: str, words: Sequence[str]) -> dict[str, str | None]:
    """Read the output of `git diff --name-status -z`: a status, a path, and for a rename the new path."""
    files: dict[str, str | None] = {}
    left = iter(words)
    for status in left:
        if not status:
            break
        former = next(left)
        name = next(left) if status[0] in "RC" else former
        files[_absolute(root, name)] = None if status[0] == "A" else former
    return files


def _absolute(root: str, name: str) -> str:
    """Return the path of a file by its name in the repository, with slashes."""
    return os.path.normpath(os.path.join(root, name))


def _git(folder: str, *arguments: str, about: str = "") -> bytes:
    """Return the output of git in a folder; about is the reference in a message. Raises ComparisonFailed."""
    # In a hook they are relative to another folder.
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_HOOK}
    try:
        ran = subprocess.run(
            [*_GIT, *arguments], cwd=folder, env=environment, capture_output=True, check=False
        )
    except OSError as error:
        raise ComparisonFailed(f"git cannot be run: {(error.strerror or str(error)).lower()}") from None
    if ran.returncode == 0:
        return ran.stdout
    if arguments[0] == "merge-base":
        raise ComparisonFailed(
            f"HEAD and {about!r} have no commit in common (a shallow clone needs its history: fetch-depth: 0)"
        )
    if about:
        raise ComparisonFailed(f"{about!r} is not a commit of this repository")
    lines = ran.stderr.decode("utf-8", "replace").strip().splitlines()
    raise ComparisonFailed(f"git: {lines[0].removeprefix('fatal: ') if lines else 'failed'}")
