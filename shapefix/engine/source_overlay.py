"""The bytes of checked files: on disk, or in memory from standard input, an editor or a repair."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH100, PTH109, PTH118

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from shapefix.sources.text import (
    LARGEST_NOTEBOOK,
    SourceText,
    Unreadable,
    is_notebook,
    read_bytes,
    source_of,
)

if TYPE_CHECKING:
    from shapefix.sources.notebook_text import NotebookText


class SourceOverlay:
    """Files by absolute path; a text in memory replaces the file on disk."""

    def __init__(self) -> None:
        self._texts: dict[str, bytes] = {}

    def set(self, path: str, data: bytes | None) -> None:
        """Replace the content of a path; None restores the file on disk."""
        if data is None:
            self._texts.pop(path, None)
        else:
            self._texts[path] = data

    def get(self, path: str) -> bytes | None:
        """Return the replacement for the file at path, or None."""
        return self._texts.get(path)

    def __bool__(self) -> bool:
        """Check whether any file is replaced."""
        return bool(self._texts)

    def data(self, path: str) -> bytes:
        """Return the bytes of a file. Raises Unreadable."""
        data = self._texts.get(path)
        if data is None:
            data = read_bytes(path, LARGEST_NOTEBOOK if is_notebook(path) else None)
        return data

    def source(self, path: str) -> SourceText:
        """Return the text of a file, the Python of all cells for a notebook. Raises Unreadable."""
        return source_of(path, self.data(path))

    def notebook(self, path: str) -> NotebookText | None:
        """Return the text of a notebook; None for other files and unreadable ones."""
        from shapefix.sources.notebook_text import read_notebook

        if not is_notebook(path):
            return None
        try:
            return read_notebook(path, self.data(path))
        except Unreadable:
            return None

    def code(self, path: str) -> bytes | None:
        """Return the Python code of a file in bytes, None if it cannot be read."""
        try:
            return self.source(path).text.encode(errors="replace") if is_notebook(path) else self.data(path)
        except Unreadable:
            return None

    def text(self, path: str) -> str | None:
        """Return the text of a file, None if it cannot be read."""
        try:
            return self.source(path).text
        except Unreadable:
            return None


def real_path(path: str) -> str:
    """Return the absolute path of a file with links in its folders resolved, but not the file itself."""
    # Called for each of 100,000 files: what is alike for those of a folder is done once.
    folder, name = os.path.split(path)
    if name in ("", os.curdir, os.pardir):
        folder, name = os.path.split(os.path.abspath(path))
    elif not folder.startswith(os.sep):
        folder = os.path.join(os.getcwd(), folder)
    return os.path.join(_real_folder(folder), name)


@lru_cache(maxsize=1024)
def _real_folder(folder: str) -> str:
    return os.path.realpath(os.path.abspath(folder))
