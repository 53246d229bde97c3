"""The open files of an editor, by path and by the URIs of their texts."""

from __future__ import annotations

from collections.abc import Mapping

from shapefix.diagnostics import cell_of
from shapefix.server.open_files import OpenCell, OpenFile, OpenPart, notebook_file


class OpenDocuments:
    """The open files of one client; each change of a file gets a new number."""

    def __init__(self) -> None:
        self._files: dict[str, OpenFile] = {}
        self._of_uri: dict[str, str] = {}
        """The file of each open text."""
        self._cells: dict[str, tuple[OpenCell, ...]] = {}
        """The cells of each open notebook, by its path."""
        self._numbers = 0

    @property
    def files(self) -> Mapping[str, OpenFile]:
        """The open files by their paths."""
        return self._files

    def next_number(self) -> int:
        """Return a number for a changed file."""
        self._numbers += 1
        return self._numbers

    def put(self, file: OpenFile) -> frozenset[str]:
        """Open or change a file; return the URIs of its former texts, such as deleted cells."""
        before = self._files.get(file.path)
        gone = self._forget_uris(before)
        self._files[file.path] = file
        for part in file.parts.values():
            self._of_uri[part.uri] = file.path
        return gone - self._of_uri.keys()

    def put_notebook(self, path: str, cells: tuple[OpenCell, ...]) -> OpenFile:
        """Note the cells of a notebook, and return its file."""
        self._cells[path] = cells
        return notebook_file(path, self.next_number(), cells)

    def remove(self, path: str) -> OpenFile | None:
        """Close a file and return it; None for an unknown one."""
        self._cells.pop(path, None)
        file = self._files.pop(path, None)
        self._forget_uris(file)
        return file

    def cells(self, path: str) -> tuple[OpenCell, ...] | None:
        """Return the cells of an open notebook."""
        return self._cells.get(path)

    def part(self, uri: str) -> tuple[str, OpenPart] | None:
        """Return an open text and its path in findings; None for an unknown one."""
        file = self._files.get(self._of_uri.get(uri, ""))
        return next((each for each in file.parts.items() if each[1].uri == uri), None) if file else None

    def part_at(self, path: str) -> OpenPart | None:
        """Return the open text at a path in findings."""
        file = self._files.get(file_of(path))
        return None if file is None else file.parts.get(path)

    def path(self, uri: str) -> str | None:
        """Return the path of the file of an open text."""
        return self._of_uri.get(uri)

    def _forget_uris(self, file: OpenFile | None) -> frozenset[str]:
        uris = frozenset(part.uri for part in file.parts.values()) if file is not None else frozenset()
        for uri in uris:
            self._of_uri.pop(uri, None)
        return uris


def file_of(path: str) -> str:
    """Return the file of a path in findings: that of a notebook for one of its cells."""
    cell = cell_of(path)
    return path if cell is None else cell[0]
