"""Decode source files, and encode texts to the exact original bytes."""

# Paths are plain strings here, as elsewhere: a path is shown as it was given.
# ruff: noqa: PTH116

from __future__ import annotations

import ast
import codecs
import errno
import os
import re
import stat
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from shapefix.light_dataclasses import dataclass

BYTE_ORDER_MARK = codecs.BOM_UTF8

# Python takes the encoding from the first row, or from the second when the first is blank or a comment.
_CODING_LINE = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK_OR_COMMENT = re.compile(rb"[ \t\f]*(?:#.*)?\Z", re.DOTALL)
_ROW_END_BYTES = re.compile(rb"\r\n|\r|\n")
_ROW_END = re.compile(r"\r\n|\r|\n")

LARGEST_SETTINGS = 1_000_000
"""Bytes of a file with settings; configurations and ignore files of people are a thousandth of it."""

LARGEST_NOTEBOOK = 30_000_000
"""Bytes of a notebook; most of a large one are the pictures in its outputs."""


class Unreadable(Exception):
    """The file cannot be read as source code; message is one sentence for the user.

    row and column count from 1, if a position is known.
    """

    def __init__(self, message: str, row: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.row = row
        self.column = column


class RefusedFile(Unreadable):
    """The file is too large, or not a regular file."""


@dataclass(frozen=True)
class SourceText:
    """A decoded file: text has the original newlines, and no byte order mark.

    is_lossy is whether bytes of a comment are no text in the file's encoding.
    """

    path: str
    text: str
    encoding: str = "utf-8"
    bom: bool = False
    is_lossy: bool = False

    def encode(self) -> bytes:
        """Return the bytes of the file; exactly the original bytes for a text read from it.

        Raises Unreadable when an edit brought in a character that the file's encoding does not have, and for
        a lossy text.
        """
        if self.is_lossy:
            raise Unreadable("has a comment that is not valid UTF-8; save it as UTF-8, and repair it then")
        try:
            body = self.text.encode(self.encoding)
        except UnicodeEncodeError as error:
            row, column = position(line_starts(self.text), error.start)
            character = self.text[error.start]
            raise Unreadable(
                f"the file's encoding {self.encoding} has no character {character!r}", row, column
            ) from None
        return BYTE_ORDER_MARK + body if self.bom else body


def read_source(path: str) -> SourceText:
    """Read and decode the file at path; raises Unreadable."""
    return source_of(path, read_bytes(path))


def source_of(path: str, data: bytes) -> SourceText:
    """Return the text of a file: for a notebook, the Python of all cells. Raises Unreadable."""
    if is_notebook(path):
        from shapefix.sources.notebook_text import read_notebook

        return read_notebook(path, data)
    return decode_source(path, data)


def is_notebook(path: str) -> bool:
    """Check for the suffix of Jupyter's notebooks."""
    return path.endswith(".ipynb")


_IN_MEMORY: dict[str, bytes] = {}
"""Files that exist in memory only, by absolute path: the cells of a running notebook."""


@contextmanager
def in_memory(path: str, data: bytes) -> Iterator[None]:
    """Read this content at an absolute path during the block."""
    _IN_MEMORY[path] = data
    try:
        yield
    finally:
        del _IN_MEMORY[path]


def is_in_memory(path: str) -> bool:
    """Check for a file of in_memory."""
    return path in _IN_MEMORY


def read_bytes(path: str, most: int | None = None) -> bytes:
    """Return the bytes of the regular file at path; raises Unreadable, also for a folder or a pipe.

    most is the largest accepted number of bytes.
    """
    if path in _IN_MEMORY:
        return _IN_MEMORY[path]
    try:
        # Opening a pipe would wait forever for a writer.
        _expect_regular(os.stat(path).st_mode)
        with open(path, "rb", opener=_open_at_once) as file:
            # What is at the path may have changed since.
            _expect_regular(os.fstat(file.fileno()).st_mode)
            data = file.read() if most is None else file.read(most + 1)
    except (OSError, ValueError) as error:
        raise Unreadable(f"cannot be read: {reason(error)}") from None
    if most is not None and len(data) > most:
        raise RefusedFile(f"is too large to be read: more than {most / 1_000_000:g} MB")
    return data


def read_settings(path: str) -> bytes:
    """Return the content of a file with settings or patterns; raises Unreadable, also above 1 MB."""
    return read_bytes(path, LARGEST_SETTINGS)


def _expect_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise RefusedFile(f"cannot be read: it is {what}")


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting, even if it is a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))


def decode_source(path: str, data: bytes) -> SourceText:
    """Decode data as Python would: the byte order mark, else the coding line (PEP 263), else UTF-8.

    path only names the result. Raises Unreadable for bytes that Python cannot read either, and for an
    encoding that does not round-trip.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Unreadable("is saved as UTF-16, which Python does not read; save it as UTF-8", 1, 1)
    nul = data.find(b"\0")
    if nul >= 0:
        row, column = _place(data, nul)
        raise Unreadable("contains a NUL byte, which Python does not accept in source code", row, column)
    bom = data.startswith(BYTE_ORDER_MARK)
    body = data[len(BYTE_ORDER_MARK) :] if bom else data
    declared = _declared_encoding(body)
    if declared is None:
        return _utf8_source(path, body, bom, coding_line=False)
    name, row = declared
    encoding = _codec_name(name, row)
    if bom and encoding != "utf-8":
        raise Unreadable(
            f"starts with a UTF-8 byte order mark, but its coding line says {name!r}; remove one of the two",
            row,
        )
    if encoding == "utf-8":
        return _utf8_source(path, body, bom, coding_line=True)
    return SourceText(path, _decode_as(body, encoding, name, row), encoding, bom)


def _utf8_source(path: str, body: bytes, bom: bool, *, coding_line: bool) -> SourceText:
    """Decode UTF-8; Python imports a module with other bytes in comments."""
    try:
        return SourceText(path, _decode_utf8(body, coding_line), "utf-8", bom)
    except Unreadable:
        if not _is_importable(body):
            raise
        return SourceText(path, body.decode("utf-8", "replace"), "utf-8", bom, is_lossy=True)


def _is_importable(body: bytes) -> bool:
    """Check whether Python reads bytes as a module."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _declared_encoding(body: bytes) -> tuple[str, int] | None:
    """Return the encoding on the coding line and its row; None without one."""
    start = 0
    for row in (1, 2):
        end = _ROW_END_BYTES.search(body, start)
        line = body[start : end.start() if end else len(body)]
        found = _CODING_LINE.match(line)
        if found:
            return found[1].decode("ascii", "replace"), row
        if end is None or not _BLANK_OR_COMMENT.match(line):
            return None
        start = end.end()
    return None


def _codec_name(name: str, row: int) -> str:
    """Return Python's canonical name of an encoding."""
    normal = name.lower().replace("_", "-")
    if normal == "utf-8" or normal.startswith("utf-8-"):
        return "utf-8"
    if normal.startswith(("latin-1-", "iso-8859-1-", "iso-latin-1-")):
        return "iso8859-1"
    try:
        known = codecs.lookup(name).name
    except (LookupError, ValueError):
        message = f"names the encoding {name!r} in its coding line, and Python knows no such encoding"
        raise Unreadable(message, row) from None
    if known == "punycode":
        # Its decoder takes quadratic time.
        raise Unreadable(f"names the encoding {name!r} in its coding line, which is for names of hosts", row)
    return known


def _decode_utf8(body: bytes, coding_line: bool) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        row, column = _place(body, error.start)
        message = f"is not valid UTF-8 (byte 0x{body[error.start]:02x})"
        if coding_line:
            message += ", although its coding line says so"
        else:
            message += "; save it as UTF-8, or name its encoding in the first line: # -*- coding: latin-1 -*-"
        raise Unreadable(message, row, column) from None


def _decode_as(body: bytes, encoding: str, name: str, row: int) -> str:
    try:
        text = body.decode(encoding)
    except LookupError:
        message = f"names {name!r} in its coding line, which is not an encoding of text"
        raise Unreadable(message, row) from None
    except UnicodeDecodeError as error:
        at_row, column = _place(body, error.start)
        message = f"is not valid {encoding}, the encoding that its coding line names"
        raise Unreadable(message, at_row, column) from None
    except ValueError:
        raise Unreadable(f"is not valid {encoding}, the encoding that its coding line names", row) from None
    # Some encodings write one text in several ways (UTF-7, ISO-2022): a repair would change foreign bytes.
    try:
        faithful = text.encode(encoding) == body
    except ValueError:
        faithful = False
    if not faithful:
        message = f"cannot be written back unchanged in its encoding {encoding}; save it as UTF-8"
        raise Unreadable(message, row)
    return text


def _place(data: bytes, index: int) -> tuple[int, int]:
    """Return row and column of a byte, from 1; the column counts characters of UTF-8."""
    row = 1
    start = 0
    for end in _ROW_END_BYTES.finditer(data, 0, index):
        row += 1
        start = end.end()
    before = data[start:index].removeprefix(BYTE_ORDER_MARK) if row == 1 else data[start:index]
    return row, len(before.decode("utf-8", "replace")) + 1


def reason(error: OSError | ValueError) -> str:
    """Return the operating system's error in plain words."""
    match error:
        case FileNotFoundError():
            return "no such file or folder"
        case PermissionError():
            return "permission denied"
        case OSError(errno=errno.ELOOP):
            return "it is a symbolic link that leads back to itself"
        case OSError() if error.strerror:
            return error.strerror[:1].lower() + error.strerror[1:]
        case ValueError() if "null" in str(error):
            # The words of Python differ from version to version.
            return "embedded null byte"
        case _:
            return str(error)


def line_starts(text: str) -> list[int]:
    r"""Return the offset of each row's start; rows end at \n, \r\n and \r, and at nothing else."""
    return [0, *(end.end() for end in _ROW_END.finditer(text))]


def rows_of(text: str) -> list[str]:
    """Split a text into its rows with their ends, without an empty last row."""
    starts = [*line_starts(text), len(text)]
    return [text[start:end] for start, end in pairwise(starts) if start < end]


def offset(starts: list[int], row: int, column: int) -> int:
    """Return the offset of a row and a column (from 1), given line_starts of the text.

    Raises ValueError for a row that the text does not have and for a column below 1; the column is not
    checked against the row's length.
    """
    if not 1 <= row <= len(starts) or column < 1:
        raise ValueError(f"no place {row}:{column} in a text of {len(starts)} rows")
    return starts[row - 1] + column - 1


def position(starts: list[int], place: int) -> tuple[int, int]:
    """Return row and column (from 1) of an offset, given line_starts of the text."""
    row = bisect_right(starts, place)
    return row, place - starts[row - 1] + 1
