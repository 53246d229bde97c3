"""Texts of an editor: their positions in each encoding of the protocol, and changes of them."""

from __future__ import annotations

import io
import tokenize
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise

from lsprotocol import types

from shapefix.diagnostics import Span
from shapefix.light_dataclasses import dataclass
from shapefix.sources.text import line_starts

Encoding = types.PositionEncodingKind | str


@dataclass(frozen=True)
class PositionedText:
    """A text, and the places in it as the protocol counts them.

    Rows of the protocol end as those of shapefix do; its columns count units of an encoding, from 0.
    """

    text: str
    encoding: Encoding = types.PositionEncodingKind.Utf16

    @cached_property
    def _rows(self) -> tuple[str, ...]:
        """The rows without their ends."""
        starts = line_starts(self.text)
        ends = [*starts[1:], len(self.text) + 1]
        return tuple(self.text[start:end].rstrip("\r\n") for start, end in zip(starts, ends, strict=True))

    def position(self, row: int, column: int) -> types.Position:
        """Return the position of a row and a column of code points, both from 1; the nearest existing one."""
        if row > len(self._rows):
            return self.position(len(self._rows), len(self._rows[-1]) + 1)
        before = self._rows[max(row, 1) - 1][: max(column, 1) - 1]
        return types.Position(max(row, 1) - 1, _units(before, self.encoding))

    def range(self, span: Span) -> types.Range:
        """Return the range of a span."""
        return types.Range(self.position(span.row, span.column), self.position(span.end_row, span.end_column))

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows without their ends."""
        return self._rows

    def row(self, row: int) -> str:
        """Return a row without its end, "" for a missing one."""
        return self._rows[row - 1] if 1 <= row <= len(self._rows) else ""

    def row_end(self, row: int) -> types.Position:
        """Return the position after the last character of a row."""
        return self.position(row, len(self._rows[row - 1]) + 1 if row <= len(self._rows) else 1)

    def place(self, position: types.Position) -> tuple[int, int]:
        """Return row and column, from 1, of a position; beyond a row it is the end of the row."""
        if position.line >= len(self._rows):
            return len(self._rows), len(self._rows[-1]) + 1
        row = self._rows[max(position.line, 0)]
        if row.isascii():
            return max(position.line, 0) + 1, min(max(position.character, 0), len(row)) + 1
        ends = [0]
        for character in row:
            ends.append(ends[-1] + _units(character, self.encoding))
        # A position inside of a character is that before it.
        return max(position.line, 0) + 1, max(bisect_right(ends, position.character), 1)

    def offset(self, position: types.Position) -> int:
        """Return the index of a position in the text."""
        row, column = self.place(position)
        return line_starts(self.text)[row - 1] + column - 1

    def changed(self, changes: Iterable[types.TextDocumentContentChangeEvent]) -> PositionedText:
        """Return the text after changes of the protocol, one after another."""
        made = self
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangeWholeDocument):
                made = PositionedText(change.text, self.encoding)
                continue
            start, end = sorted((made.offset(change.range.start), made.offset(change.range.end)))
            made = PositionedText(made.text[:start] + change.text + made.text[end:], self.encoding)
        return made


def _units(text: str, encoding: Encoding) -> int:
    """Count the units of a text in an encoding of positions."""
    if encoding == types.PositionEncodingKind.Utf32 or text.isascii():
        return len(text)
    if encoding == types.PositionEncodingKind.Utf8:
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text) + sum(character > "\uffff" for character in text)


def as_file(text: str) -> bytes:
    """Return the content of a file with this text, in the encoding of its coding line."""
    data = text.encode("utf-8", "replace")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return text.encode(encoding, "replace")
    except (SyntaxError, LookupError, ValueError):
        return data


@dataclass(frozen=True)
class MovedRows:
    """The rows of a newer text with the content of an older one, before and after its changed rows."""

    before: int
    after: int
    shift: int

    def row(self, row: int) -> int | None:
        """Return the row of the newer text for one of the older text; None for a changed one."""
        if row <= self.before:
            return row
        return row + self.shift if row >= self.after else None


def moved_rows(old: str, new: str) -> MovedRows:
    """Compare two texts: rows before the first difference and after the last one are the same."""
    first, second = _split(old), _split(new)
    least = min(len(first), len(second))
    before = next((n for n in range(least) if first[n] != second[n]), least)
    same = next((n for n in range(least - before) if first[-1 - n] != second[-1 - n]), least - before)
    return MovedRows(before, len(first) - same + 1, len(second) - len(first))


def _split(text: str) -> list[str]:
    return [text[start:end] for start, end in pairwise([*line_starts(text), len(text)])]
