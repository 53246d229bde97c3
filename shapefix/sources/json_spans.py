"""Places of cell sources in the JSON text of a notebook, and their replacement in the style of the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from shapefix.light_dataclasses import dataclass

_TOKEN = re.compile(r'\s*(?:("[^"\\]*(?:\\.[^"\\]*)*")|([\[\]{},:])|([^\s\[\]{},:"]+))', re.DOTALL)


@dataclass(frozen=True)
class CellSource:
    """The value of a cell's source from start to end of the JSON text, strings is its parts as written.

    opening, between and closing are the texts around the parts of a list; a source that is a single string
    has none.
    """

    start: int
    end: int
    strings: tuple[str, ...]
    opening: str = ""
    between: str = ""
    closing: str = ""

    @property
    def text(self) -> str:
        """The source as the kernel gets it."""
        return "".join(map(json.loads, self.strings))

    def written(self, rows: list[str], ascii_only: bool) -> str:
        """Return the JSON text of other rows in the style of this source; known rows keep their spelling."""
        if not self.opening:
            return json.dumps("".join(rows), ensure_ascii=ascii_only)
        known = {json.loads(string): string for string in self.strings}
        written = [known.get(row) or json.dumps(row, ensure_ascii=ascii_only) for row in rows]
        return self.opening + self.between.join(written) + self.closing


@dataclass
class _Container:
    """An object or a list around the present token, and the key or the index in it."""

    is_object: bool
    key: str | int
    names_key: bool


def cell_sources(text: str) -> Iterator[tuple[int, CellSource]]:
    """Yield the number of each cell, from 1, and its source; text is a valid notebook."""
    around: list[_Container] = []
    number, list_start, parts = 0, -1, list[tuple[int, int]]()
    for token in _TOKEN.finditer(text):
        string, mark, _ = token.groups()
        start, end = token.span(token.lastindex or 0)
        at = tuple(each.key for each in around)
        if mark in ("{", "["):
            number += mark == "{" and _is_cell(at)
            if mark == "[" and _is_source(at):
                list_start, parts = start, []
            around.append(_Container(mark == "{", "" if mark == "{" else 0, mark == "{"))
        elif mark in ("}", "]"):
            around.pop()
            if mark == "]" and list_start >= 0 and _is_source(at[:-1]):
                yield number, _source_list(text, list_start, end, parts)
                list_start = -1
        elif mark == ",":
            last = around[-1]
            last.names_key = last.is_object
            if isinstance(last.key, int):
                last.key += 1
        elif string and around and around[-1].names_key:
            around[-1].key, around[-1].names_key = json.loads(string), False
        elif string and list_start >= 0:
            parts.append((start, end))
        elif string and _is_source(at):
            yield number, CellSource(start, end, (string,))


def _is_cell(at: tuple[str | int, ...]) -> bool:
    """Whether the value at these keys is a cell of nbformat 4, or of 3."""
    match at:
        case ("cells", int()) | ("worksheets", int(), "cells", int()):
            return True
    return False


def _is_source(at: tuple[str | int, ...]) -> bool:
    return len(at) > 2 and at[-1] in ("source", "input") and _is_cell(at[:-1])


def _source_list(text: str, start: int, end: int, parts: list[tuple[int, int]]) -> CellSource:
    strings = tuple(text[first:last] for first, last in parts)
    if not parts:
        return CellSource(start, end, (), "[", ", ", "]")
    opening, closing = text[start : parts[0][0]], text[parts[-1][1] : end]
    between = text[parts[0][1] : parts[1][0]] if len(parts) > 1 else f",{opening[1:] or ' '}"
    return CellSource(start, end, strings, opening, between, closing)
