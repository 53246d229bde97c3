"""Which places of the user's code a run has come to, and what their names held there.

Nothing is traced: a place is known where a call was made that is watched anyway. What that says of the lines
before it is for those to tell who read the source.
"""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any

import torch

from . import frames
from .session import Session

_AT_MOST, _NAMES = 1000, 60


class Visits:
    """The places of one session, each written when it is reached for the first time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[tuple[str, CodeType, int], int] = {}
        self._passed: set[int] = set()
        self._returned: set[CodeType] = set()

    def reach(self, frame: FrameType | None) -> int:
        """A call is made in a frame of the user's; returns the number of its place, 0 for anybody else's."""
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
        outer = [self.reach(each) for each in frames.users(frame.f_back)]
        self._session.observations.write(
            "reached",
            id=number,
            site=frames.place(frame.f_code, frame.f_lasti, frame.f_lineno),
            outer=[each for each in outer if each],
            values=_values(frame),
        )
        return number

    def come(self, frame: FrameType | None) -> int:
        """As reach, for the user's frame that a frame of a library was called from."""
        return self.reach(next(frames.users(frame), None))

    def passed(self, number: int) -> None:
        """The call at a place has returned."""
        if number and number not in self._passed:
            self._passed.add(number)
            self._session.observations.write("passed", id=number)

    def returned(self, module: object) -> None:
        """The forward of a module has returned."""
        code = getattr(getattr(type(module), "forward", None), "__code__", None)
        if code is None or code in self._returned or not frames.is_users(code.co_filename):
            return
        self._returned.add(code)
        self._session.observations.write(
            "returned", file=code.co_filename, row=code.co_firstlineno, function=code.co_name
        )


def _values(frame: FrameType) -> dict[str, Any]:
    """The whole numbers and the sizes of tensors that names of a frame hold."""
    found: dict[str, Any] = {}
    for name, value in list(frame.f_locals.items()):
        if len(found) >= _NAMES:
            break
        if type(value) is int:
            found[name] = value
        elif isinstance(value, torch.Tensor):
            try:
                found[name] = [int(size) for size in value.shape]
            except Exception:  # a size that is not known yet, or is no number
                continue
    return found
