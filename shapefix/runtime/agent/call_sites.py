"""Executed calls in the user's code, with the numbers and sizes of the names there.

Nothing is traced: only calls that are watched anyway are recorded. shapefix.runtime.confirmation works out
what that means for the lines before them.
"""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any

import torch

from ..protocol import CallSiteLine, CallSiteReturnedLine, ForwardReturnedLine
from . import frames
from .session import Session

_AT_MOST, _NAMES = 1000, 60


class CallSites:
    """The call sites of one session, each written when it is reached for the first time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[tuple[str, CodeType, int], int] = {}
        self._returned: set[int] = set()
        self._forwards: set[CodeType] = set()

    def record(self, frame: FrameType | None) -> int:
        """Record the call made by a frame of the user's; returns its id, 0 for a frame of a library."""
        if frame is None:
            return 0
        # By file, too: equal codes of two cells of a notebook are equal.
        key = (frame.f_code.co_filename, frame.f_code, frame.f_lasti)
        number = self._known.get(key)
        if number is not None:
            return number
        if not frames.is_users(frame.f_code.co_filename) or len(self._known) >= _AT_MOST:
            return 0
        number = self._known[key] = len(self._known) + 1
        outer = [self.record(each) for each in frames.users(frame.f_back)]
        self._session.sink.write(
            CallSiteLine(
                kind="call_site",
                id=number,
                site=frames.place(frame.f_code, frame.f_lasti, frame.f_lineno),
                outer=[each for each in outer if each],
                values=_values(frame),
            )
        )
        return number

    def enter(self, frame: FrameType | None) -> int:
        """Record the call of the user's around a frame of a library."""
        return self.record(next(frames.users(frame), None))

    def returned(self, number: int) -> None:
        """Record that a call returned."""
        if number and number not in self._returned:
            self._returned.add(number)
            self._session.sink.write(CallSiteReturnedLine(kind="call_site_returned", id=number))

    def forward_returned(self, module: object) -> None:
        """Record that the forward of a module returned."""
        code = getattr(getattr(type(module), "forward", None), "__code__", None)
        if code is None or code in self._forwards or not frames.is_users(code.co_filename):
            return
        self._forwards.add(code)
        self._session.sink.write(
            ForwardReturnedLine(
                kind="forward_returned",
                file=code.co_filename,
                row=code.co_firstlineno,
                function=code.co_name,
            )
        )


def _values(frame: FrameType) -> dict[str, Any]:
    """The whole numbers, and the sizes of tensors, by the names of a frame."""
    found: dict[str, Any] = {}
    for name, value in list(frame.f_locals.items()):
        if len(found) >= _NAMES:
            break
        if type(value) is int:
            found[name] = value
        elif isinstance(value, torch.Tensor):
            try:
                found[name] = [int(size) for size in value.shape]
            except Exception:  # a size that is not known yet, or not a number
                continue
    return found
