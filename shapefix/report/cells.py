"""Measure and wrap text in terminal cells: wide characters take two cells, combining ones none."""

from __future__ import annotations

from shapefix.report.view import visible

_TAB = 4
_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)


def glyphs(text: str) -> tuple[list[str], list[int]]:
    """Return each code point of a row as displayed, and its first cell, from 0.

    The list of cells has one more entry: the total width.
    """
    from rich.cells import cell_len

    shown, starts, at, before = [], [0], 0, ""
    for character in text:
        if character == "\t":
            shown.append(" " * (_TAB - at % _TAB))
            at += len(shown[-1])
        else:
            shown.append(visible(character))
            # A character after a joiner, or a skin tone, is drawn into the character before it.
            if before != _JOINER and ord(character) not in _SKIN_TONES:
                at += cell_len(shown[-1])
        starts.append(at)
        before = character
    return shown, starts


def width_of(text: str) -> int:
    """Return the number of cells of one row of text."""
    return len(text) if text.isascii() and text.isprintable() else glyphs(text)[1][-1]


def wrapped(text: str, width: int, first: int | None = None, hang: int = 0) -> list[str]:
    """Wrap text to rows of at most width cells, at spaces and inside of words longer than a row.

    The first row has first cells instead; the others begin with hang spaces, counted in width.
    """
    width = max(width, hang + 8)
    room = width if first is None else max(first, 8)
    rows, row = [], ""
    for word in text.split():
        joined = f"{row} {word}" if row.strip() else row + word
        if width_of(joined) <= room:
            row = joined
            continue
        if row.strip():
            rows.append(row)
            room, row = width, " " * hang
        for character in word:
            if width_of(row + character) > room:
                rows.append(row)
                room, row = width, " " * hang
            row += character
    return [*rows, row]
