"""Tensor copies on each call of a model: to another device, or into another layout."""

from __future__ import annotations

import functools
import sys
from types import FrameType
from typing import Any

import torch

from ...protocol import DeviceCopyLine, LayoutCopyLine, ModuleName
from .. import frames
from ..describe import describe
from ..module_calls import ModuleCalls
from ..session import Session

_PLACES, _LARGE = 32, 16 << 20


class CopyWatcher:
    """Records tensor copies made by running modules."""

    def __init__(self, session: Session, modules: ModuleCalls) -> None:
        self._session = session
        self._modules = modules
        self._seen: set[Any] = set()

    def install(self) -> None:
        """Watch `to`, `cuda`, `reshape` and `contiguous` of tensors from now on."""
        for name in ("to", "cuda"):
            setattr(torch.Tensor, name, self._watch_device(getattr(torch.Tensor, name)))
        for name in ("reshape", "contiguous"):
            setattr(torch.Tensor, name, self._watch_layout(getattr(torch.Tensor, name), name))

    def _watch_device(self, original: Any) -> Any:
        @functools.wraps(original)
        def move(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            out = original(tensor, *args, **kwargs)
            if out is not tensor and self._modules.active() and out.device != tensor.device:
                self._write_device_copy(tensor, str(out.device), sys._getframe(1))
            return out

        return move

    def _watch_layout(self, original: Any, name: str) -> Any:
        @functools.wraps(original)
        def copy(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            out = original(tensor, *args, **kwargs)
            if self._modules.active() and tensor.numel() * tensor.element_size() >= _LARGE:
                if tensor.layout is torch.strided and _is_copy(tensor, out):
                    self._write_layout_copy(tensor, name, sys._getframe(1))
            return out

        return copy

    def _write_device_copy(self, tensor: Any, device: str, caller: FrameType) -> None:
        if not self._is_new("device", caller):
            return
        owner = vars(self._modules.active()[-1])
        self._session.sink.write(
            DeviceCopyLine(
                kind="device_copy",
                value=describe(tensor),
                bytes=tensor.numel() * tensor.element_size(),
                module=self._running(),
                attribute=next((name for name, each in owner.items() if each is tensor), None),
                called_at=frames.site(caller),
                device=device,
            )
        )

    def _write_layout_copy(self, tensor: Any, function: str, caller: FrameType) -> None:
        if not self._is_new("layout", caller):
            return
        self._session.sink.write(
            LayoutCopyLine(
                kind="layout_copy",
                value=describe(tensor),
                bytes=tensor.numel() * tensor.element_size(),
                module=self._running(),
                called_at=frames.site(caller),
                function=function,
            )
        )

    def _is_new(self, kind: str, caller: FrameType) -> bool:
        """Whether a copy is to be written: the first of its place in the user's code."""
        key = (kind, caller.f_code, caller.f_lasti)
        users = frames.is_users(caller.f_code.co_filename)
        if not users or key in self._seen or len(self._seen) >= _PLACES or not self._session.watches():
            return False
        self._seen.add(key)
        return True

    def _running(self) -> ModuleName:
        module = self._modules.active()[-1]
        return ModuleName(name=self._modules.name(module), type=type(module).__name__)


def _is_copy(tensor: Any, other: Any) -> bool:
    """Whether two tensors have different storages."""
    return bool(tensor.untyped_storage()._cdata != other.untyped_storage()._cdata)
