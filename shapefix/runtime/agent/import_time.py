"""Measure the time of imports of libraries; it does not count against the time limit."""

from __future__ import annotations

import glob
from types import FrameType

from . import frames

SUFFIX = ".importing"
_MOST = 600.0
_IMPORT = ("<frozen importlib._bootstrap>", "_find_and_load")


def is_importing(frame: FrameType | None) -> bool:
    """Whether a library is being imported, from the innermost frame of a thread.

    Code of the user's counts as running, also while its own module is being imported.
    """
    while frame is not None:
        code = frame.f_code
        if (code.co_filename, code.co_name) == _IMPORT:
            return True
        if frames.is_users(code.co_filename):
            return False
        frame = frame.f_back
    return False


class ImportTime:
    """The seconds of imports so far, in a file beside the observations, for the parent and other ranks."""

    def __init__(self, observations: str, alone: bool) -> None:
        self._path = observations + SUFFIX
        self._all = self._path if alone else f"{glob.escape(observations.rpartition('.')[0])}.*{SUFFIX}"
        self._seconds = 0.0

    def add(self, seconds: float) -> None:
        """Add seconds of an import."""
        self._seconds += seconds
        try:
            with open(self._path, "w", encoding="ascii") as file:  # noqa: PTH123
                file.write(f"{self._seconds:.3f}\n")
        except OSError:
            pass

    def longest(self) -> float:
        """The seconds of this process, or of the rank with the most."""
        return longest_import(self._all)


def longest_import(pattern: str) -> float:
    """The most seconds in files, up to ten minutes; 0 without any."""
    found = 0.0
    for name in glob.glob(pattern):  # noqa: PTH207
        try:
            with open(name, encoding="ascii") as file:  # noqa: PTH123
                found = max(found, float(file.readline() or 0))
        except (OSError, ValueError):
            continue
    return min(found, _MOST)
