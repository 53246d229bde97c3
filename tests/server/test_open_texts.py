"""Positions of the protocol in texts with tabs, wide characters and odd ends of rows."""

from __future__ import annotations

import random
import re

import pytest
from lsprotocol import types

from shapefix.server.open_texts import PositionedText, as_file, moved_rows

ENCODINGS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
CHARACTERS = "a\té😀漢\n\r\f\u2028x"


def random_text(draw: random.Random, length: int) -> str:
    return "".join(draw.choice(CHARACTERS) for _ in range(draw.randrange(length)))


def split_rows(text: str) -> list[str]:
    return re.split(r"\r\n|\r|\n", text)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_positions_there_and_back(encoding: str) -> None:
    codec, size = ENCODINGS[encoding]
    draw = random.Random(1)
    for _ in range(100):
        text = PositionedText(random_text(draw, 30), encoding)
        for row, line in enumerate(split_rows(text.text), 1):
            for column in range(1, len(line) + 2):
                position = text.position(row, column)
                expected = len(line[: column - 1].encode(codec)) // size
                assert (position.line, position.character) == (row - 1, expected)
                assert text.place(position) == (row, column)
        last = types.Position(99, 3)
        assert text.offset(last) == len(text.text)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_changes_of_ranges(encoding: str) -> None:
    draw = random.Random(2)
    for _ in range(200):
        text = PositionedText(random_text(draw, 20), encoding)
        rows = split_rows(text.text)
        places = sorted(
            (row, draw.randrange(len(rows[row - 1]) + 1) + 1)
            for row in (draw.randrange(len(rows)) + 1, draw.randrange(len(rows)) + 1)
        )
        start, end = (text.position(*place) for place in places)
        new = random_text(draw, 5)
        change = types.TextDocumentContentChangePartial(types.Range(start, end), new)
        made = text.changed([change])
        first, last = (text.offset(each) for each in (start, end))
        assert made.text == text.text[:first] + new + text.text[last:]
        assert made.changed([types.TextDocumentContentChangeWholeDocument("x")]).text == "x"


def test_a_position_inside_of_a_character_is_before_it() -> None:
    assert PositionedText("a😀b", "utf-16").place(types.Position(0, 2)) == (1, 2)
    assert PositionedText("a😀b", "utf-8").place(types.Position(0, 4)) == (1, 2)


def test_rows_around_a_change() -> None:
    draw = random.Random(3)
    for _ in range(100):
        old = [draw.choice("abc") + "\n" for _ in range(draw.randrange(8))]
        new = list(old)
        for _ in range(draw.randrange(3)):
            at = draw.randrange(len(new) + 1)
            new[at : at + draw.randrange(2)] = [draw.choice("abcd") + "\n"] * draw.randrange(3)
        moved = moved_rows("".join(old), "".join(new))
        for row in range(1, len(old) + 1):
            to = moved.row(row)
            assert to is None or new[to - 1] == old[row - 1]


def test_a_text_is_saved_in_the_encoding_of_its_coding_line() -> None:
    assert as_file("# coding: latin-1\né = 1\n") == "# coding: latin-1\né = 1\n".encode("latin-1")
    assert as_file("é = 1\n") == "é = 1\n".encode()
    assert as_file("# coding: none-such\né = 1\n") == "# coding: none-such\né = 1\n".encode()
    assert as_file("x = '\ud800'\n") == b"x = '?'\n"
