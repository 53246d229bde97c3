"""The storages of a device: when each is born, what it is for, and how much lives at the peak."""

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

from .. import frames
from .allocator import Allocator, Block, rounded

PARAMETERS, GRADIENTS, STATE = "parameters", "gradients", "optimizer state"
INPUTS, ACTIVATIONS, TEMPORARY = "inputs", "activations", "temporary"


@dataclass
class Peak:
    """The moment at which most is alive. bytes are of live storages; by_kind is what they are for."""

    bytes: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)
    phase: str = ""
    module: str | None = None
    operation: str = ""
    frame: tuple[CodeType, int, int] | None = None

    def told(self) -> dict[str, Any]:
        """The peak as an observation."""
        return {
            "bytes": self.bytes,
            "by_kind": {kind: size for kind, size in self.by_kind.items() if size},
            "phase": self.phase,
            "module": self.module,
            "operation": self.operation,
            "site": None if self.frame is None else frames.place(*self.frame),
        }


@dataclass
class _Storage:
    """What is known of one living storage."""

    size: int
    kind: str
    block: Block | None


class Storages:
    """The living storages among the tensors that it is shown.

    counted says which tensors are on the device; phase and kind are of what is born from now on. running
    names the module that is running. A storage is counted when it is first seen, with the bytes that it
    takes in the allocator, until it dies.
    """

    def __init__(
        self, counted: Callable[[torch.Tensor], bool], running: Callable[[], str | None] = lambda: None
    ) -> None:
        self.allocator = Allocator()
        self.phase, self.kind = "setup", INPUTS
        self.live = 0
        self.peaks: dict[str, Peak] = {}
        self._totals: dict[str, int] = {}
        self._counted, self._running = counted, running
        self._seen: Any = WeakIdKeyDictionary()
        self._living: dict[int, tuple[Any, _Storage]] = {}
        self._number = 0

    @property
    def totals(self) -> dict[str, int]:
        """The bytes alive, by what they are for."""
        return {kind: size for kind, size in self._totals.items() if size}

    def see(self, values: Any, operation: str = "") -> None:
        """Count the storages of the tensors among values that were not seen before."""
        for value in tree_leaves(values):
            if isinstance(value, torch.Tensor) and self._counted(value):
                self._see(value, operation)

    def mark(self, tensors: Iterable[torch.Tensor | None], kind: str) -> None:
        """Say what the storages of tensors are for."""
        for tensor in tensors:
            if tensor is None or not self._counted(tensor):
                continue
            self._see(tensor, "")
            known = self._seen[tensor.untyped_storage()]
            self._add(known.kind, -known.size)
            known.kind = kind
            self._add(kind, known.size)

    def begin(self, phase: str, kind: str) -> None:
        """What happens from now on belongs to a phase; its peak begins at what is alive."""
        self.phase, self.kind = phase, kind
        self._peak("")

    def reset_peaks(self) -> None:
        """Forget the peaks: a new step begins."""
        self.peaks.clear()

    def _see(self, tensor: torch.Tensor, operation: str) -> None:
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
        known = _Storage(size, self.kind, self.allocator.take(request))
        self._seen[storage] = known
        self._living[number] = (weakref.ref(storage, lambda _: self._die(number)), known)
        self.live += size
        self._add(known.kind, size)
        self._peak(operation)

    def _die(self, number: int) -> None:
        _, known = self._living.pop(number)
        self.live -= known.size
        self._add(known.kind, -known.size)
        if known.block is not None:
            self.allocator.give(known.block)

    def _add(self, kind: str, size: int) -> None:
        self._totals[kind] = self._totals.get(kind, 0) + size

    def _peak(self, operation: str) -> None:
        peak = self.peaks.setdefault(self.phase, Peak())
        if self.live <= peak.bytes:
            return
        frame = next(frames.users(sys._getframe(1)), None)
        peak.bytes, peak.by_kind, peak.phase = self.live, dict(self._totals), self.phase
        peak.module, peak.operation = self._running(), operation
        peak.frame = None if frame is None else (frame.f_code, frame.f_lasti, frame.f_lineno)
