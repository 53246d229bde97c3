"""The working tree of a run: its folders, the plan to protect them, and the files changed nevertheless."""

# Paths are plain strings here, as in the agent.

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from shapefix.runtime.agent.disk import cache_folders
from shapefix.runtime.user_python import project_folders

METHODS = "SHAPEFIX_PROBE_PROTECTION"
"""The variable with the allowed methods, in a comma-separated list: for systems where one causes trouble."""

_MOST_FILES, _MOST_SECONDS = 50_000, 1.0
_MOST_NAMED = 100
_SKIPPED = (".git", "__pycache__")

State = tuple[int, int, int, int]


@dataclass
class WorkingTree:
    """The folders to protect, and the files in them before the run, up to a limit.

    kept are folders inside roots that the script may write to: caches, and that of the probe. foreign is a
    file of another owner or group, if the user may write to it. complete says whether all files are known.
    """

    roots: list[str]
    kept: list[str]
    files: dict[str, State] = field(default_factory=dict)
    foreign: str | None = None
    complete: bool = True

    def changes(self) -> WritesLeft:
        """The changed, new and missing files and folders since the scan before the run."""
        now = WorkingTree(self.roots, self.kept)
        now.scan()
        if not (self.complete and now.complete):
            return WritesLeft(compared=False)
        names = dict.fromkeys((*self.files, *now.files))
        changed = [name for name in names if self.files.get(name) != now.files.get(name)]
        return WritesLeft(changed=tuple(changed[:_MOST_NAMED]))

    def scan(self) -> list[str]:
        """Record the files below the roots; returns the targets of links to other folders."""
        linked: list[str] = []
        until = time.monotonic() + _MOST_SECONDS
        for root in self.roots:
            for path, state in _entries(root, self.kept):
                if len(self.files) >= _MOST_FILES or time.monotonic() > until:
                    self.complete = False
                    return linked
                # The time and size of a folder change with its entries, which are recorded themselves.
                known = (0, 0) if stat.S_ISDIR(state.st_mode) else (state.st_size, state.st_mtime_ns)
                self.files[path] = (*known, state.st_ino, state.st_mode)
                if stat.S_ISLNK(state.st_mode):
                    linked.append(os.path.realpath(path))
                elif self.foreign is None and _is_foreign(state) and os.access(path, os.W_OK):
                    self.foreign = path
        return linked


def working_tree(script: str, folder: Path, environ: Mapping[str, str] = os.environ) -> WorkingTree:
    """The tree of a run in the current folder: its project and the script's, and the targets of their links.

    folder is that of the probe.
    """
    starts = [Path.cwd(), Path(os.path.realpath(script)).parent]
    tops = [str(project_folders(each)[-1]) for each in starts if each.is_dir()]
    roots = _outermost(os.path.realpath(top) for top in tops)
    own = os.path.realpath(folder)
    caches = [os.path.realpath(each) for each in cache_folders(environ)]
    # A project inside a cache is not a cache.
    free = [own, *(each for each in caches if not any(is_within(root, each) for root in roots))]
    tree = WorkingTree(roots, free)
    linked = [each if os.path.isdir(each) else os.path.dirname(each) for each in tree.scan()]  # noqa: PTH112, PTH120
    more = [each for each in dict.fromkeys(linked) if _is_protectable(each, [*roots, *free])]
    if more:
        tree = WorkingTree(_outermost([*roots, *more]), free)
        tree.scan()
    inside = [each for each in free if any(is_within(each, root) for root in tree.roots)]
    tree.kept = [each for each in inside if os.path.isdir(each)]  # noqa: PTH112
    return tree


def protection_plan(
    tree: WorkingTree, folder: Path, stack: ExitStack, environ: Mapping[str, str] = os.environ
) -> dict[str, object]:
    """The agent's plan for protecting a tree; temporary folders are deleted at the end of stack."""
    named = environ.get(METHODS, "overlay,landlock")
    return {
        "methods": [each for each in named.split(",") if sys.platform.startswith("linux")],
        "roots": tree.roots,
        "kept": tree.kept,
        "open": [os.path.realpath(folder)],
        "foreign": tree.foreign,
        "layers": _layers(tree.roots, folder, stack),
    }


def _layers(roots: Sequence[str], folder: Path, stack: ExitStack) -> str | None:
    """Create a folder for the writes; the kernel requires one outside of the roots."""
    for base in (str(folder), tempfile.gettempdir(), "/var/tmp", "/tmp"):
        real = os.path.realpath(base)
        if os.access(real, os.W_OK) and not any(is_within(real, root) for root in roots):
            made = tempfile.TemporaryDirectory(prefix="shapefix-probe-", dir=real, ignore_cleanup_errors=True)
            return stack.enter_context(made)
    return None


@dataclass(frozen=True)
class WritesLeft:
    """The writes of a run: those in overlays, files deleted there only, and changes of the working tree.

    compared says whether all changes are known.
    """

    discarded: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    compared: bool = True


NOTHING_LEFT = WritesLeft()


def left_by_run(tree: WorkingTree, plan: Path) -> WritesLeft:
    """The writes of a run with a plan, after its end."""
    try:
        result = json.loads(Path(f"{plan}.done").read_text("utf-8"))
    except (OSError, ValueError):
        return tree.changes()
    return _in_overlays(result["layers"]) if result["method"] == "overlay" else tree.changes()


def _in_overlays(layers: Iterable[Sequence[str]]) -> WritesLeft:
    """The changes in overlays, of pairs of a root and the folder with its writes."""
    written, deleted = [], []
    for root, upper in layers:
        for path, state in _entries(upper, ()):
            real = root + path[len(upper) :]
            if stat.S_ISCHR(state.st_mode) and state.st_rdev == 0:  # a whiteout
                deleted.append(real)
            elif not stat.S_ISDIR(state.st_mode) or not os.path.isdir(real):  # noqa: PTH112
                written.append(real)
    return WritesLeft(tuple(sorted(written)[:_MOST_NAMED]), tuple(sorted(deleted)[:_MOST_NAMED]))


def is_within(path: str, folder: str) -> bool:
    """Whether a path is a folder or below it."""
    return path == folder or path.startswith(os.path.join(folder, ""))  # noqa: PTH118


def _entries(folder: str, skipped: Sequence[str]) -> Iterator[tuple[str, os.stat_result]]:
    """The entries below a folder, without following links and without the skipped folders."""
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.path in skipped:
                        continue
                    state = entry.stat(follow_symlinks=False)
                    yield entry.path, state
                    if stat.S_ISDIR(state.st_mode) and entry.name not in _SKIPPED:
                        waiting.append(entry.path)
        except OSError:
            continue


def _outermost(folders: Iterable[str]) -> list[str]:
    """Folders without those inside others, and without the root of the file system."""
    every = [each for each in dict.fromkeys(folders) if os.path.dirname(each) != each]  # noqa: PTH120
    return [each for each in every if not any(other != each and is_within(each, other) for other in every)]


def _is_protectable(folder: str, known: Sequence[str]) -> bool:
    """Whether the user may write to the target of a link, a folder apart from the known ones."""
    if folder.count(os.sep) < 2 or not os.path.isdir(folder) or not os.access(folder, os.W_OK):  # noqa: PTH112
        return False
    if is_within(os.path.realpath(tempfile.gettempdir()), folder):
        return False
    return not any(is_within(folder, each) or is_within(each, folder) for each in known)


def _is_foreign(state: os.stat_result) -> bool:
    return sys.platform != "win32" and (state.st_uid, state.st_gid) != (os.geteuid(), os.getegid())
