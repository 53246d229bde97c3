"""Text measured in terminal cells: wide characters take two, combining ones none, a tab runs to its stop."""

from __future__ import annotations

from shapefix.report.view import visible

_TAB = 4
_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)


def glyphs(text: str) -> tuple[list[str], list[int]]:
    """Each code point of one row of text as it is shown, and the cell at which it begins, from 0.

    The list of cells has one more entry, the width of the whole.
    """
    from rich.cells import cell_len

    shown, starts, at, before = [], [0], 0, ""
    for character in text:
        if character == "\t":
            shown.append(" " * (_TAB - at % _TAB))
            at += len(shown[-1])
        else:
            shown.append(visible(character))
            # What follows a joiner, or colours the skin, is drawn into the character before it.
            if before != _JOINER and ord(character) not in _SKIN_TONES:
                at += cell_len(shown[-1])
        starts.append(at)
        before = character
    return shown, starts


def width_of(text: str) -> int:
    """How many cells one row of text takes."""
    return len(text) if text.isascii() and text.isprintable() else glyphs(text)[1][-1]


def wrapped(text: str, width: int, first: int | None = None, hang: int = 0) -> list[str]:
    """text in rows of at most width cells, broken at spaces and, in words too long for a row, anywhere.

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
