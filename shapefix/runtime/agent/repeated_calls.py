"""Evaluations that are not driven by a loader: a call that repeats itself is answered from memory.

nanoGPT estimates its loss with hundreds of calls of the same size. Where four of them have told what they
can, and took longer than a person should wait, the others get a copy of the last answer.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from . import describe, frames
from .session import Session

_CALLS, _SECONDS, _AT_MOST = 4, 1.0, 20_000


@dataclass
class Answer:
    """What is known of one call that repeats itself."""

    session: Session
    site: frames.Place
    calls: int = 0
    seconds: float = 0.0
    last: Any = field(default=None)
    answered: bool = False

    def learn(self, out: Any, seconds: float) -> None:
        """Take in one more real call."""
        self.calls += 1
        self.seconds += seconds
        if self.calls >= _CALLS and self.seconds >= _SECONDS and _plain(out):
            self.last, self.answered = copy.deepcopy(out), True

    def answer(self) -> Any:
        """A copy of the last real answer. Raises StopProbe where the loop seems to have no end."""
        self.calls += 1
        self.session.cut("an evaluation that repeats itself is answered from memory", self.site)
        if self.calls > _AT_MOST:
            self.session.stop("the evaluation does not end")
        return copy.deepcopy(self.last)


class Answers:
    """The repeating calls of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[str, Answer] = {}

    def known(self, module: Any, args: Any, kwargs: Any, caller: FrameType) -> Answer | None:
        """What is known of this call; None where it is no plain one made by the user's own code."""
        code = caller.f_code
        if self._session.active_passes or module.training or not frames.is_users(code.co_filename):
            return None
        if not all(_plain(each) for each in (*args, *kwargs.values())):
            return None
        key = repr((id(module), code.co_filename, caller.f_lasti, describe.call(args, kwargs)))
        if key not in self._known:
            self._known[key] = Answer(self._session, frames.place(code, caller.f_lasti, caller.f_lineno))
        return self._known[key]


def _plain(value: Any) -> bool:
    """Whether a value is made of tensors without gradient, numbers and texts only."""
    if isinstance(value, torch.Tensor):
        return not value.requires_grad
    if value is None or isinstance(value, (bool, int, float, str)):
        return True
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    return isinstance(value, Mapping) and all(map(_plain, value.values()))
