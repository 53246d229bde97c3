from __future__ import annotations

import codecs
import contextlib
import importlib
import io
import os
import sys
import tokenize
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapefix.sources.text import (
    SourceText,
    Unreadable,
    decode_source,
    line_starts,
    offset,
    position,
    read_source,
)

NEWLINES = st.sampled_from(["\n", "\r\n", "\r", "\x0c", "\x0b", "\x1c", "\x85", "\u2028", ""])
TEXTS = st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), NEWLINES)).map(
    lambda rows: "".join(text + end for text, end in rows).replace("\0", "")
)


def decode(data: bytes) -> SourceText:
    return decode_source("a.py", data)


def refusal(data: bytes) -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        decode(data)
    return caught.value


@given(
    TEXTS,
    st.booleans(),
    st.sampled_from(["", "# coding: utf-8\n", "#!/bin/sh\r\n# vim: fileencoding=UTF8\r\n"]),
)
def test_utf8_comes_back_byte_for_byte(text: str, bom: bool, head: str) -> None:
    data = codecs.BOM_UTF8 * bom + (head + "x = 1\n" + text).encode()
    source = decode(data)
    assert source.encode() == data
    assert source.bom == bom
    assert not source.text.startswith("\ufeff")


@given(st.binary())
def test_any_bytes_come_back_or_are_refused(data: bytes) -> None:
    for head in (
        b"",
        b"# coding: latin-1\n",
        b"\n# coding: cp1252\n",
        b"# coding: shift_jis\n",
        b"# coding: utf-7\n",
    ):
        with contextlib.suppress(Unreadable):
            assert decode(head + data).encode() == head + data


CODING_LINES = [
    b"# coding: latin-1\nx = '\xe9'\n",
    b"# -*- coding: iso-8859-15 -*-\r\nx = '\xa4'\r\n",
    b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '\x80'\n",
    b"\n# coding: latin-1\nx = '\xe9'\n",
    b" \t\x0c# coding=latin1\n'\xe9'\n",
    b"# coding: utf_8\n'\xc3\xa9'\n",
    b"# coding: Latin-1-unix\n'\xe9'\n",
    b"# coding: koi8-r\n'\xc1'",
    b"\xef\xbb\xbf# coding: utf-8-sig\n",
    b"# first\n# second\n# coding: latin-1\n",
    b"x = 1\n# coding: latin-1\n",
    b"",
]


@pytest.mark.parametrize("data", CODING_LINES)
def test_the_encoding_is_the_one_that_python_takes(data: bytes) -> None:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    source = decode(data)
    assert source.text == data.decode(encoding)
    assert source.encode() == data


def test_a_coding_line_ends_at_a_carriage_return_too() -> None:
    assert decode(b"# one\r# coding: latin-1\r'\xe9'\r").text.endswith("'\xe9'\r")


def test_latin_1_without_a_coding_line_is_refused_with_its_place() -> None:
    error = refusal("x = 1\na = 'é'\n".encode("latin-1"))
    assert "not valid UTF-8 (byte 0xe9)" in error.message
    assert "coding" in error.message
    assert (error.row, error.column) == (2, 6)


@pytest.mark.parametrize("before", [b"", b"# coding: utf-8\n"])
def test_other_bytes_in_a_comment_are_read_as_python_imports_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes
) -> None:
    data = before + b"x = 1  # caf\xe9 \xbf\xef\ny = 2\n"
    (tmp_path / "bytes_in_comment.py").write_bytes(data)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert importlib.import_module("bytes_in_comment").y == 2
    monkeypatch.delitem(sys.modules, "bytes_in_comment")
    source = decode(data)
    assert source.text.count("\n") == data.count(b"\n")
    assert source.text.endswith("\ny = 2\n")
    with pytest.raises(Unreadable, match="save it as UTF-8"):
        source.encode()


def test_bytes_that_are_not_in_the_named_encoding_are_refused() -> None:
    assert "although its coding line says so" in refusal(b"# coding: utf-8\n'\xe9'").message
    error = refusal(b"# coding: ascii\n'\xe9'")
    assert "not valid ascii" in error.message
    assert (error.row, error.column) == (2, 2)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("klingon", "Python knows no such encoding"),
        ("rot13", "not an encoding of text"),
        ("zlib", "not an encoding of text"),
        ("undefined", "is not valid undefined"),
        ("punycode", "which is for names of hosts"),
    ],
)
def test_a_name_that_is_no_encoding_is_named(name: str, said: str) -> None:
    error = refusal(f"# coding: {name}\nx = 1\n".encode())
    assert name in error.message
    assert said in error.message
    assert error.row == 1


def test_a_byte_order_mark_and_another_coding_line_contradict_each_other() -> None:
    assert "byte order mark" in refusal(codecs.BOM_UTF8 + b"# coding: latin-1\n").message


def test_a_nul_byte_is_refused_with_its_place() -> None:
    error = refusal(b"x = 1\r\ny = '\xc3\xa9\0'\n")
    assert "NUL byte" in error.message
    assert (error.row, error.column) == (2, 7)


def test_utf_16_is_called_by_its_name() -> None:
    assert "UTF-16" in refusal("x = 1\n".encode("utf-16")).message


def test_an_encoding_that_writes_one_text_in_two_ways_is_refused() -> None:
    assert "written back unchanged" in refusal(b"# coding: utf-7\n'+AGE-'\n").message


def test_an_edit_that_the_encoding_cannot_hold_is_refused_with_its_place() -> None:
    with pytest.raises(Unreadable, match="no character '→'") as caught:
        SourceText("a.py", "x = 1\ny = '→'\n", "iso8859-1").encode()
    assert (caught.value.row, caught.value.column) == (2, 6)


def test_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "tabs.py"
    data = b"\xef\xbb\xbfif x:\r\n\ty = 1\r\n\x0c\r\nz = 2"
    path.write_bytes(data)
    source = read_source(str(path))
    assert source.text == "if x:\r\n\ty = 1\r\n\x0c\r\nz = 2"
    assert source.encode() == data


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "loop.py").symlink_to("loop.py")
    os.mkfifo(tmp_path / "pipe.py")
    for name, said in (
        ("vanished.py", "no such file"),
        (".", "a folder"),
        ("loop.py", "leads back to itself"),
        ("pipe.py", "not a regular file"),
        ("nul\0.py", "null byte"),
    ):
        with pytest.raises(Unreadable, match=said):
            read_source(f"{tmp_path}/{name}")


def test_a_file_without_permission_says_so(unprivileged: Path) -> None:
    path = unprivileged / "secret.py"
    path.touch(mode=0o000)
    with pytest.raises(Unreadable, match="permission denied"):
        read_source(str(path))


def test_rows_end_at_newlines_and_carriage_returns_only() -> None:
    text = "a\nb\r\nc\rd\x0ce\x0bf\x1cg\x85h\u2028i\n\r"
    assert [text[start : start + 1] for start in line_starts(text)] == ["a", "b", "c", "d", "\r", ""]


@given(TEXTS, st.data())
def test_places_and_offsets_are_inverse(text: str, data: st.DataObject) -> None:
    starts = line_starts(text)
    place = data.draw(st.integers(0, len(text)))
    row, column = position(starts, place)
    assert offset(starts, row, column) == place
    universal = io.StringIO(text[:place] + "x", newline=None).read()
    if not text[:place].endswith("\r"):
        assert row == universal.count("\n") + 1
        assert column == len(universal.rpartition("\n")[2])


def test_a_place_outside_of_the_text_is_refused() -> None:
    starts = line_starts("one\n")
    assert offset(starts, 2, 1) == 4
    for row, column in ((0, 1), (3, 1), (1, 0)):
        with pytest.raises(ValueError, match="no place"):
            offset(starts, row, column)
