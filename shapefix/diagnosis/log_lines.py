"""Split a log into clean lines, in constant memory."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

_CHUNK = 1 << 16
_LONGEST = 20_000
"""The number of bytes after which a line is cut."""
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f]"
)
"""Colors, cursor movements, links and titles of terminals, and other control characters."""


def log_lines(stream: BinaryIO) -> Iterator[str]:
    """Yield the lines of a log without colors; a carriage return ends a line, as in progress bars."""
    rest = b""
    skipping = False
    for chunk in _utf8(stream):
        data = rest + chunk
        # Its newline may be in the next chunk.
        ends_in_return = data.endswith(b"\r")
        *lines, rest = re.split(rb"\r\n|\r|\n", data[:-1] if ends_in_return else data)
        for line in lines:
            if not skipping:
                yield clean(line)
            skipping = False
        if len(rest) > _LONGEST:
            if not skipping:
                yield clean(rest)
            rest, skipping = b"", True
        if ends_in_return:
            rest += b"\r"
    if rest and not skipping:
        yield clean(rest)


def _utf8(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes of a log in chunks; a log in UTF-16, as PowerShell writes it, is converted."""
    first = stream.read(_CHUNK)
    if first[:2] not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from iter(partial(stream.read, _CHUNK), b"")
        return
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    yield decoder.decode(first).encode("utf-8", "replace")
    for chunk in iter(partial(stream.read, _CHUNK), b""):
        yield decoder.decode(chunk).encode("utf-8", "replace")


def clean(line: bytes) -> str:
    """Decode a line and drop control characters."""
    text = line[:_LONGEST].decode("utf-8", "replace")
    return (text if text.isprintable() else _CONTROL.sub("", text)).rstrip()
