"""Evaluation without a loader: repeated calls of a model get a copy of an earlier result.

nanoGPT estimates its loss with hundreds of calls of the same sizes. After four of them that took more than a
second together, the others get a copy of the last result.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from ..protocol import UserPlace
from . import frames
from .describe import describe_call
from .session import Session

_CALLS, _SECONDS, _AT_MOST = 4, 1.0, 20_000


@dataclass
class RepeatedCall:
    """A repeated call of a model with inputs of the same sizes."""

    session: Session
    site: UserPlace
    calls: int = 0
    seconds: float = 0.0
    last: Any = field(default=None)
    replays: bool = False

    def record(self, out: Any, seconds: float) -> None:
        """Record the result of one more real call."""
        self.calls += 1
        self.seconds += seconds
        if self.calls >= _CALLS and self.seconds >= _SECONDS and _plain(out):
            self.last, self.replays = copy.deepcopy(out), True

    def replay(self) -> Any:
        """A copy of the last real result. Raises StopProbe if the loop seems to be endless."""
        self.calls += 1
        self.session.truncate_loop("a repeated evaluation reuses an earlier result", self.site)
        if self.calls > _AT_MOST:
            self.session.stop("the evaluation does not end")
        return copy.deepcopy(self.last)


class RepeatedCalls:
    """The repeated calls of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[str, RepeatedCall] = {}

    def find(self, module: Any, args: Any, kwargs: Any, caller: FrameType) -> RepeatedCall | None:
        """The repeated call around this one; None unless it is a plain call in the user's code."""
        code = caller.f_code
        if self._session.active_passes or module.training or not frames.is_users(code.co_filename):
            return None
        if not all(_plain(each) for each in (*args, *kwargs.values())):
            return None
        key = repr((id(module), code.co_filename, caller.f_lasti, describe_call(args, kwargs)))
        if key not in self._known:
            self._known[key] = RepeatedCall(
                self._session, frames.place(code, caller.f_lasti, caller.f_lineno)
            )
        return self._known[key]


def _plain(value: Any) -> bool:
    """Whether a value consists of tensors without gradients, numbers and texts only."""
    if isinstance(value, torch.Tensor):
        return not value.requires_grad
    if value is None or isinstance(value, (bool, int, float, str)):
        return True
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    return isinstance(value, Mapping) and all(map(_plain, value.values()))
