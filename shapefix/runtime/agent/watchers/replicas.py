"""Modules in DistributedDataParallel, and training calls of them instead of the wrapper."""

from __future__ import annotations

import functools
import linecache
import sys
import weakref
from types import FrameType
from typing import Any

from torch.nn.parallel import DistributedDataParallel

from ...protocol import ReplicaBypassedLine, UserPlace
from .. import frames
from ..session import Session
from .loss_graphs import LossGraphs

_BY_HAND = "all_reduce"


class Replicas:
    """The wrapped modules of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._wrapped: weakref.WeakKeyDictionary[Any, tuple[Any, UserPlace | None]] = (
            weakref.WeakKeyDictionary()
        )
        self._around: tuple[Any, UserPlace | None] | None = None
        self._is_prepared = False

    def install(self) -> None:
        """Watch the construction of all wrappers from now on."""
        original, wrapped = DistributedDataParallel.__init__, self._wrapped

        @functools.wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            wrapped[self.module] = (weakref.ref(self), frames.site(sys._getframe(1)))

        DistributedDataParallel.__init__ = __init__

    def called(self, module: Any, caller: FrameType) -> None:
        """Note a training call from outside of any module."""
        if isinstance(module, DistributedDataParallel):
            self._is_prepared = True
        elif module in self._wrapped:
            self._around = (module, frames.site(caller))

    def backward(self, graphs: LossGraphs) -> None:
        """Write a line if the loss depends on a module, and no wrapper was called in this step."""
        around, is_prepared = self._around, self._is_prepared
        self._around, self._is_prepared = None, False
        if around is None or is_prepared:
            return
        module, called_at = around
        wrapper, created_at = self._wrapped[module]
        wraps = wrapper()
        if wraps is None or not wraps.require_backward_grad_sync:
            return
        if not any(id(each) in graphs.parameters for each in module.parameters()):
            return
        if called_at is None or any(_BY_HAND in row for row in linecache.getlines(called_at["file"])):
            return
        self._session.sink.write(
            ReplicaBypassedLine(
                kind="replica_bypassed",
                model=type(module).__name__,
                called_at=called_at,
                created_at=created_at,
            )
        )
