"""The bytes of the files of a run: on disk, from standard input, or as a repair left them."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH100, PTH118

from __future__ import annotations

import os
from functools import lru_cache

from shapefix.sources.text import SourceText, Unreadable, decode_source, read_bytes


class Texts:
    """Files by their absolute paths; what is laid over a path hides the disk."""

    def __init__(self) -> None:
        self._laid_over: dict[str, bytes] = {}

    def lay_over(self, path: str, data: bytes | None) -> None:
        """From now on, let path hold data; with None, what the disk holds."""
        if data is None:
            self._laid_over.pop(path, None)
        else:
            self._laid_over[path] = data

    def laid_over(self, path: str) -> bytes | None:
        """What lies over path, if anything does."""
        return self._laid_over.get(path)

    def data(self, path: str) -> bytes:
        """The bytes of a file; raises Unreadable."""
        data = self._laid_over.get(path)
        return read_bytes(path) if data is None else data

    def source(self, path: str) -> SourceText:
        """The text of a file; raises Unreadable."""
        return decode_source(path, self.data(path))

    def text(self, path: str) -> str | None:
        """The text of a file, None where it cannot be had."""
        try:
            return self.source(path).text
        except Unreadable:
            return None


def real(path: str) -> str:
    """The absolute path of a file, through no link but perhaps its own: one file has one such path."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(_real_folder(folder), name)


@lru_cache(maxsize=1024)
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)
