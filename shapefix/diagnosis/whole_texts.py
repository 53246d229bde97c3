"""The whole program around a place: a file, or all cells of a notebook."""

from __future__ import annotations

from typing import cast

from shapefix.diagnostics import cell_of, path_of
from shapefix.light_dataclasses import dataclass
from shapefix.sources.notebook_text import NotebookText
from shapefix.sources.text import SourceText, read_source


@dataclass(frozen=True)
class WholeText:
    """The text of a file or notebook; rows_before is the number of its rows before those of the cell."""

    source: SourceText
    rows_before: int = 0

    @property
    def text(self) -> str:
        return self.source.text

    def place(self, row: int) -> tuple[str, int]:
        """Return the path, or the cell, of a row of the text, and the row in it."""
        if not isinstance(self.source, NotebookText):
            return self.source.path, row
        number, row = self.source.place(row)
        return path_of(self.source.path, number), row


def whole_text(path: str) -> WholeText:
    """Return the program around a file or a cell. Raises Unreadable."""
    cell = cell_of(path)
    if cell is None:
        return WholeText(read_source(path))
    notebook = cast("NotebookText", read_source(cell[0]))
    first = next((each.first_row for each in notebook.cells if each.number == cell[1]), 1)
    return WholeText(notebook, first - 1)
