"""The storages on a device: the purpose of each, and the peak of live bytes."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from ...protocol import PeakMemory
from .. import frames
from .allocator import CachingAllocator, MemoryBlock, rounded

PARAMETERS, GRADIENTS, STATE = "parameters", "gradients", "optimizer state"
INPUTS, ACTIVATIONS, TEMPORARY = "inputs", "activations", "temporary"


@dataclass
class Peak:
    """The moment with the most live bytes in a phase: live storages, by purpose in by_kind."""

    bytes: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)
    phase: str = ""
    module: str | None = None
    operation: str = ""
    frame: tuple[CodeType, int, int] | None = None

    def observation(self) -> PeakMemory:
        """The peak as a part of a line."""
        return PeakMemory(
            bytes=self.bytes,
            by_kind={kind: size for kind, size in self.by_kind.items() if size},
            phase=self.phase,
            module=self.module,
            operation=self.operation,
            site=None if self.frame is None else frames.place(*self.frame),
        )


@dataclass
class _Storage:
    """A live storage."""

    size: int
    kind: str
    block: MemoryBlock | None


class Storages:
    """The live storages of the tensors on a device.

    counted says which tensors are on the device; phase and kind are those of new storages. running names the
    module that is running. A storage is counted from its first tensor until it is freed, with the bytes that
    it takes in the allocator.
    """

    def __init__(
        self, counted: Callable[[torch.Tensor], bool], running: Callable[[], str | None] = lambda: None
    ) -> None:
        self.allocator = CachingAllocator()
        self.phase, self.kind = "setup", INPUTS
        self.live = 0
        self.peaks: dict[str, Peak] = {}
        self._totals: dict[str, int] = {}
        self._counted, self._running = counted, running
        self._seen: Any = WeakIdKeyDictionary()
        self._live_storages: dict[int, tuple[Any, _Storage]] = {}
        self._number = 0

    @property
    def totals(self) -> dict[str, int]:
        """The live bytes, by purpose."""
        return {kind: size for kind, size in self._totals.items() if size}

    def add(self, values: Any, operation: str = "") -> None:
        """Count the new storages of the tensors among values."""
        for value in tree_leaves(values):
            if isinstance(value, torch.Tensor) and self._counted(value):
                self._add_storage(value, operation)

    def mark(self, tensors: Iterable[torch.Tensor | None], kind: str) -> None:
        """Set the purpose of the storages of tensors."""
        for tensor in tensors:
            if tensor is None or not self._counted(tensor):
                continue
            self._add_storage(tensor, "")
            known = self._seen[tensor.untyped_storage()]
            self._count(known.kind, -known.size)
            known.kind = kind
            self._count(kind, known.size)

    def begin(self, phase: str, kind: str) -> None:
        """Begin a phase; its peak starts with the living storages."""
        self.phase, self.kind = phase, kind
        self._peak("")

    def reset_peaks(self) -> None:
        """Remove the peaks at the beginning of a step."""
        self.peaks.clear()

    def _add_storage(self, tensor: torch.Tensor, operation: str) -> None:
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):  # sparse tensors, and others without a storage
            return
        if storage in self._seen:
            return
        request = storage.nbytes()
        self._number += 1
        number = self._number
        size = rounded(request) if request else 0
        known = _Storage(size, self.kind, self.allocator.allocate(request))
        self._seen[storage] = known
        self._live_storages[number] = (weakref.ref(storage, lambda _: self._free(number)), known)
        self.live += size
        self._count(known.kind, size)
        self._peak(operation)

    def _free(self, number: int) -> None:
        _, known = self._live_storages.pop(number)
        self.live -= known.size
        self._count(known.kind, -known.size)
        if known.block is not None:
            self.allocator.free(known.block)

    def _count(self, kind: str, size: int) -> None:
        self._totals[kind] = self._totals.get(kind, 0) + size

    def _peak(self, operation: str) -> None:
        peak = self.peaks.setdefault(self.phase, Peak())
        if self.live <= peak.bytes:
            return
        frame = next(frames.users(sys._getframe(1)), None)
        peak.bytes, peak.by_kind, peak.phase = self.live, dict(self._totals), self.phase
        peak.module, peak.operation = self._running(), operation
        peak.frame = None if frame is None else (frame.f_code, frame.f_lasti, frame.f_lineno)
