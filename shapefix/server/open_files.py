"""Open files of an editor: Python files, and notebooks with their cells."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lsprotocol import types

from shapefix.diagnostics import path_of
from shapefix.light_dataclasses import dataclass
from shapefix.server.open_texts import Encoding, PositionedText, as_file


@dataclass(frozen=True)
class OpenPart:
    """An open text: a file, or a code cell of a notebook."""

    uri: str
    version: int
    text: PositionedText


@dataclass(frozen=True)
class OpenFile:
    """An open file: number grows with each change, and parts are its texts by the paths of findings.

    data is the content of the file as it would be saved.
    """

    path: str
    number: int
    parts: Mapping[str, OpenPart]
    data: bytes


def python_file(path: str, number: int, part: OpenPart) -> OpenFile:
    """Return an open Python file."""
    return OpenFile(path, number, {path: part}, as_file(part.text.text))


@dataclass(frozen=True)
class OpenCell:
    """A cell of an open notebook; execution is its number in the order of runs."""

    uri: str
    is_code: bool
    version: int
    text: PositionedText
    execution: int | None = None


def opened_cells(
    cells: Iterable[types.NotebookCell], documents: Iterable[types.TextDocumentItem], encoding: Encoding
) -> tuple[OpenCell, ...]:
    """Return the cells of a notebook with their texts."""
    texts = {each.uri: each for each in documents}
    return tuple(_cell(cell, texts[cell.document], encoding) for cell in cells if cell.document in texts)


def changed_cells(
    cells: Sequence[OpenCell], change: types.NotebookDocumentCellChanges, encoding: Encoding
) -> tuple[OpenCell, ...]:
    """Return the cells of a notebook after a change: of their order, their runs, their texts."""
    made = list(cells)
    if change.structure is not None:
        array = change.structure.array
        known = {cell.uri: cell for cell in cells}
        opened = {each.uri: each for each in change.structure.did_open or ()}
        new: list[OpenCell] = []
        for cell in array.cells or ():
            # A moved cell is deleted and inserted, and keeps its text.
            if cell.document in opened:
                new.append(_cell(cell, opened[cell.document], encoding))
            elif cell.document in known:
                new.append(known[cell.document])
        made[array.start : array.start + array.delete_count] = new
    data = {each.document: each for each in change.data or ()}
    texts = {each.document.uri: each for each in change.text_content or ()}
    for place, open_cell in enumerate(made):
        if open_cell.uri in data:
            open_cell = replace(open_cell, execution=_execution(data[open_cell.uri]))
        if open_cell.uri in texts:
            edited = texts[open_cell.uri]
            text = open_cell.text.changed(edited.changes)
            open_cell = replace(open_cell, text=text, version=edited.document.version)
        made[place] = open_cell
    return tuple(made)


def _cell(cell: types.NotebookCell, document: types.TextDocumentItem, encoding: Encoding) -> OpenCell:
    is_code = cell.kind == types.NotebookCellKind.Code and document.language_id == "python"
    text = PositionedText(document.text, encoding)
    return OpenCell(cell.document, is_code, document.version, text, _execution(cell))


def _execution(cell: types.NotebookCell) -> int | None:
    summary = cell.execution_summary
    return None if summary is None else summary.execution_order


def notebook_file(path: str, number: int, cells: Sequence[OpenCell]) -> OpenFile:
    """Return an open notebook."""
    document = {
        "cells": [
            {
                "cell_type": "code",
                "execution_count": cell.execution,
                "metadata": {},
                "outputs": [],
                "source": cell.text.text,
            }
            if cell.is_code
            else {"cell_type": "markdown", "metadata": {}, "source": ""}
            for cell in cells
        ],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    parts = {
        path_of(path, place): OpenPart(cell.uri, cell.version, cell.text)
        for place, cell in enumerate(cells, 1)
        if cell.is_code
    }
    return OpenFile(path, number, parts, json.dumps(document).encode())
