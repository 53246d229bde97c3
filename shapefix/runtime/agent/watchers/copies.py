"""Copies of tensors that a model makes at each call: to another device, or in another layout."""

from __future__ import annotations

import functools
import sys
from types import FrameType
from typing import Any

import torch

from .. import frames
from ..describe import describe
from ..module_calls import Calls
from ..session import Session

_PLACES, _LARGE = 32, 16 << 20


class Copies:
    """Watches the copies that are made while a module is running."""

    def __init__(self, session: Session, calls: Calls) -> None:
        self._session = session
        self._calls = calls
        self._told: set[Any] = set()

    def install(self) -> None:
        """Watch `to`, `cuda`, `reshape` and `contiguous` of tensors from now on."""
        for name in ("to", "cuda"):
            setattr(torch.Tensor, name, self._moving(getattr(torch.Tensor, name)))
        for name in ("reshape", "contiguous"):
            setattr(torch.Tensor, name, self._laying_out(getattr(torch.Tensor, name), name))

    def _moving(self, original: Any) -> Any:
        @functools.wraps(original)
        def move(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            out = original(tensor, *args, **kwargs)
            if out is not tensor and self._calls.active() and out.device != tensor.device:
                self._tell("moved", tensor, sys._getframe(1), to=str(out.device))
            return out

        return move

    def _laying_out(self, original: Any, name: str) -> Any:
        @functools.wraps(original)
        def lay_out(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            out = original(tensor, *args, **kwargs)
            if self._calls.active() and tensor.numel() * tensor.element_size() >= _LARGE:
                if tensor.layout is torch.strided and _apart(tensor, out):
                    self._tell("laid out", tensor, sys._getframe(1), by=name)
            return out

        return lay_out

    def _tell(self, kind: str, tensor: Any, caller: FrameType, **known: Any) -> None:
        key = (kind, caller.f_code, caller.f_lasti)
        users = frames.is_users(caller.f_code.co_filename)
        if not users or key in self._told or len(self._told) >= _PLACES or not self._session.watches():
            return
        self._told.add(key)
        module = self._calls.active()[-1]
        self._session.observations.write(
            kind,
            value=describe(tensor),
            bytes=tensor.numel() * tensor.element_size(),
            module={"name": self._calls.name(module), "type": type(module).__name__},
            attribute=next((name for name, each in vars(module).items() if each is tensor), None),
            called=frames.site(caller),
            **known,
        )


def _apart(tensor: Any, other: Any) -> bool:
    """Whether two tensors have storages of their own."""
    return bool(tensor.untyped_storage()._cdata != other.untyped_storage()._cdata)
