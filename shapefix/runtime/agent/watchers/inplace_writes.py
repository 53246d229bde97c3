"""Writes into tensors saved for a gradient: the place of the save, and that of the write."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ...protocol import SavedTensorWrittenLine, UserPlace
from .. import frames
from ..session import Session

_KEPT = 200_000


@dataclass(frozen=True)
class _Saved:
    """A tensor saved for a gradient, with its version then; order is its number among saves and writes."""

    tensor: torch.Tensor
    version: int
    order: int
    site: UserPlace | None
    module: str | None


class InplaceWrites:
    """The saves and writes of one session. Only a second run has it, since it is slow.

    running returns the name of the innermost running module.
    """

    def __init__(self, session: Session, running: Callable[[], str | None]) -> None:
        self._session = session
        self._running = running
        self._saved: list[_Saved] = []
        self._writes: dict[int, list[tuple[int, str, UserPlace | None]]] = {}
        self._order = itertools.count()

    def install(self) -> None:
        """Watch saves and writes from now on."""
        hooks = torch.autograd.graph.saved_tensors_hooks(self._save, lambda saved: saved)
        hooks.__enter__()
        _WriteMode(self._write).__enter__()

    def _save(self, tensor: torch.Tensor) -> torch.Tensor:
        if self._session.watches() and len(self._saved) < _KEPT:
            site = frames.site(sys._getframe(1))
            self._saved.append(_Saved(tensor, tensor._version, next(self._order), site, self._running()))
        return tensor

    def _write(self, tensor: Any, function: str) -> None:
        if self._session.watches() and isinstance(tensor, torch.Tensor):
            key = tensor.untyped_storage()._cdata
            write = (next(self._order), function, frames.site(sys._getframe(1)))
            self._writes.setdefault(key, []).append(write)

    def check(self) -> None:
        """Write the changed ones of the saved tensors before a backward.

        Versions do not show it: within the mode, operations on lists of tensors leave them as they are.
        """
        saved, self._saved = self._saved, []
        for each in saved:
            writes = self._writes.get(each.tensor.untyped_storage()._cdata, ())
            write = next((one for one in writes if one[0] > each.order), None)
            if write is not None:
                self._session.sink.write(
                    SavedTensorWrittenLine(
                        kind="saved_tensor_written",
                        size=list(each.tensor.shape),
                        versions=[each.version, each.tensor._version],
                        function=write[1],
                        module=each.module,
                        saved_at=each.site,
                        written_at=write[2],
                    )
                )


class _WriteMode(TorchDispatchMode):  # type: ignore[misc]
    """Passes each written tensor to a function, with the name of the operation."""

    def __init__(self, write: Callable[[Any, str], None]) -> None:
        super().__init__()
        self._write = write

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        schema = func._schema
        if schema.is_mutable:
            for given, argument in zip(args, schema.arguments, strict=False):
                if argument.alias_info is not None and argument.alias_info.is_write:
                    for each in given if isinstance(given, (list, tuple)) else (given,):
                        self._write(each, schema.name.partition("::")[2])
        return out
