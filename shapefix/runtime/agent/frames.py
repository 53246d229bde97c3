"""Frames of the user's code, and their places in the user's files."""

from __future__ import annotations

import dis
import linecache
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType, TracebackType
from typing import Any

from ..protocol import UserPlace

# shapefix itself: the agent, and its caller in a notebook.
_HERE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "")) + os.sep  # noqa: PTH100, PTH118, PTH120
# The file names that IPython and Python's own prompt give to typed lines.
_TYPED = ("<ipython-input-", "<python-input-")
_LIBRARIES = tuple(
    os.path.join(path, "")  # noqa: PTH118
    for name, path in sysconfig.get_paths().items()
    if name in ("stdlib", "platstdlib", "purelib", "platlib")
)


@lru_cache(maxsize=None)  # noqa: UP033
def is_users(filename: str) -> bool:
    """Whether a file is the user's: not of the standard library, an installed package, or shapefix."""
    if filename.startswith("<"):
        return filename.startswith(_TYPED)
    path = os.path.abspath(filename)  # noqa: PTH100
    parts = path.split(os.sep)  # noqa: PTH206
    if "site-packages" in parts or "dist-packages" in parts:
        return False
    return not path.startswith((_HERE, *_LIBRARIES))


def users(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of the user's code, from frame outwards."""
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def site(frame: FrameType | None) -> UserPlace | None:
    """The innermost place of the user's code, from frame outwards; None if none is running."""
    for each in users(frame):
        return place(each.f_code, each.f_lasti, each.f_lineno)
    return None


def construction(frame: FrameType | None, made: object) -> tuple[CodeType, int, int] | None:
    """The code, instruction and row of a running construction.

    The object's own `__init__`, and those of its bases, are skipped.
    """
    while frame is not None:
        code = frame.f_code
        own = (
            code.co_name == "__init__"
            and code.co_varnames
            and frame.f_locals.get(code.co_varnames[0]) is made
        )
        if not own and is_users(code.co_filename):
            return code, frame.f_lasti, frame.f_lineno
        frame = frame.f_back
    return None


def variable_of(frame: FrameType | None, value: object) -> str | None:
    """The variable with a value in the innermost frame of the user's code, or the attribute of its `self`."""
    for each in users(frame):
        own = each.f_locals.get("self")
        attributes = {} if own is None else {**getattr(own, "__dict__", {}), **getattr(own, "_modules", {})}
        for names, prefix in ((each.f_locals, ""), (each.f_globals, ""), (attributes, "self.")):
            for name, known in list(names.items()):
                if known is value and name != "self":
                    return f"{prefix}{name}"
        return None
    return None


def calls_next(frame: FrameType) -> bool:
    """Whether the user's code in a frame calls `next` itself, not through a loop."""
    code = frame.f_code
    loops = ("FOR_ITER", "SEND", "YIELD_FROM")
    return is_users(code.co_filename) and not dis.opname[code.co_code[frame.f_lasti]].startswith(loops)


def place(code: CodeType, instruction: int, row: int) -> UserPlace:
    """The expression of an instruction; its whole row if Python has no columns for it."""
    return _place(code.co_filename, code, instruction, row)


@lru_cache(maxsize=4096)
def _place(named: str, code: CodeType, instruction: int, row: int) -> UserPlace:
    # By the name of the file, too: equal codes of two files, or cells, are equal.
    file = named if named.startswith("<") else os.path.abspath(named)  # noqa: PTH100
    found: tuple[Any, ...] = (None, None, None, None)
    if sys.version_info >= (3, 11) and instruction >= 0:
        positions = list(code.co_positions())
        if instruction // 2 < len(positions):
            found = positions[instruction // 2]
    start, end, left, right = found
    if None in (start, end, left, right) or start > row or (end == start and right <= left):
        text = linecache.getline(file, row).rstrip("\r\n")
        start = end = row
        first, last = len(text) - len(text.lstrip()), max(len(text), 1)
    else:
        first, last = _points(file, start, left), _points(file, end, right)
    return UserPlace(
        file=file,
        row=start,
        column=first + 1,
        end_row=end,
        end_column=last + 1,
        function=code.co_name,
    )


def whole_row(file: str, row: int) -> UserPlace:
    """A row of a file, without its indentation."""
    text = linecache.getline(file, row).rstrip("\r\n")
    first, last = len(text) - len(text.lstrip()), max(len(text), 1)
    path = file if file.startswith("<") else os.path.abspath(file)  # noqa: PTH100
    return UserPlace(file=path, row=row, column=first + 1, end_row=row, end_column=last + 1, function="")


def _points(file: str, row: int, offset: int) -> int:
    """The code points before an offset in bytes on a row."""
    text = linecache.getline(file, row)
    return len(text.encode("utf-8")[:offset].decode("utf-8", "ignore")) if text else offset


def stack(trace: TracebackType | None, outside: FrameType | None) -> list[UserPlace]:
    """The user's places on the way of an exception, innermost first, including those it has not reached yet.

    outside is the frame in which the agent caught the exception.
    """
    inner = [
        place(frame.f_code, _instruction(trace, frame), row)
        for frame, row in _walked(trace)
        if is_users(frame.f_code.co_filename)
    ]
    outer = [place(each.f_code, each.f_lasti, each.f_lineno) for each in users(outside)]
    return (inner[::-1] + outer)[:40]


def innermost(trace: TracebackType | None) -> tuple[FrameType, UserPlace] | None:
    """The user's frame nearest to the raise of an exception, and the place in it."""
    found = None
    for frame, row in _walked(trace):
        if is_users(frame.f_code.co_filename):
            found = frame, row
    if found is None:
        return None
    frame, row = found
    return frame, place(frame.f_code, _instruction(trace, frame), row)


def raised_in(trace: TracebackType | None) -> str | None:
    """The file of the last frame, not counting the agent's own."""
    files = [frame.f_code.co_filename for frame, _ in _walked(trace)]
    return next((each for each in reversed(files) if not each.startswith(_HERE)), None)


def passes_through(trace: TracebackType | None, *parts: str) -> bool:
    """Whether the traceback of an exception has a file with one of these names in its path."""
    files = (frame.f_code.co_filename for frame, _ in _walked(trace))
    return any(not set(parts).isdisjoint(file.split(os.sep)) for file in files)  # noqa: PTH206


def _walked(trace: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    yield from traceback.walk_tb(trace)


def _instruction(trace: TracebackType | None, frame: FrameType) -> int:
    while trace is not None:
        if trace.tb_frame is frame:
            return trace.tb_lasti
        trace = trace.tb_next
    return -1
