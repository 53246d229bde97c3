"""Open files of an editor: Python files, and notebooks with their cells."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shapefix.diagnostics import path_of
from shapefix.server.open_texts import PositionedText, as_file


@dataclass(frozen=True)
class OpenPart:
    """An open text: a file, or a code cell of a notebook; version is None for a cell."""

    uri: str
    version: int | None
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
    text: PositionedText
    execution: int | None = None


def notebook(path: str, number: int, cells: Sequence[OpenCell]) -> OpenFile:
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
        path_of(path, place): OpenPart(cell.uri, None, cell.text)
        for place, cell in enumerate(cells, 1)
        if cell.is_code
    }
    return OpenFile(path, number, parts, json.dumps(document).encode())
