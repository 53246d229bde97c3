"""Memory during the first training step, sampled by a thread.

The samples of a phase are written when the next phase begins.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Literal

import torch

from ..protocol import MemoryTimelineLine
from .session import Session

ReadMemory = Callable[[], int]
MemorySource = Literal["fake", "cuda", "process"]

_INTERVAL = 0.002
_PHASES = 64  # enough for gradient accumulation within one step
_SAMPLES = 240  # per phase; beyond that, pairs are merged into the larger one


class MemoryTimeline:
    """Samples the memory of one session in bytes, from its first call of a model until the optimizer step.

    simulated reads the memory of a simulated GPU, if there is one.
    """

    def __init__(self, session: Session, simulated: ReadMemory | None = None) -> None:
        self._session = session
        self._source: MemorySource = "fake" if simulated is not None else "process"
        self._read = simulated
        self._phase: str | None = None
        self._samples: list[tuple[float, int]] = []
        self._stride, self._skipped = 1, 0
        self._lock = threading.Lock()
        self._phases = 0
        self._done = False

    def begin(self, phase: str | None) -> None:
        """Begin a phase: forward, loop, backward or step; None after the step, or at the end.

        Sampling starts with the first forward.
        """
        if self._done or (self._phase is None and phase != "forward"):
            return
        if phase is None or self._phases == _PHASES:
            self._end()
            return
        if self._phase is None and not self._start():
            self._done = True
            return
        self._sample()
        self._flush()
        self._phase = phase
        self._sample()

    def _end(self) -> None:
        self._sample()
        self._flush()
        self._done = True

    def _start(self) -> bool:
        if self._read is None:
            self._source, self._read = _memory_reader()
        if self._read is None:
            return False
        threading.Thread(target=self._watch, name="shapefix memory", daemon=True).start()
        return True

    def _watch(self) -> None:
        while not self._done:
            time.sleep(_INTERVAL)
            self._sample()

    def _sample(self) -> None:
        if self._read is None or self._phase is None or self._done:
            return
        try:
            now, taken = time.perf_counter(), self._read()
        except Exception:
            return
        with self._lock:
            self._skipped += 1
            if self._samples and self._skipped < self._stride:
                at, most = self._samples[-1]
                self._samples[-1] = (at, max(most, taken))
                return
            self._skipped = 0
            self._samples.append((now, taken))
            if len(self._samples) > _SAMPLES:
                pairs = zip(self._samples[::2], self._samples[1::2], strict=False)
                self._samples = [(first[0], max(first[1], second[1])) for first, second in pairs]
                self._stride *= 2

    def _flush(self) -> None:
        if self._phase is None:
            return
        with self._lock:
            samples, self._samples = self._samples, []
            self._stride, self._skipped = 1, 0
        self._phases += 1
        self._session.sink.write(
            MemoryTimelineLine(
                kind="memory_timeline",
                source=self._source,
                phase=self._phase,
                samples=[(round(at, 6), taken) for at, taken in samples],
            )
        )


def _memory_reader() -> tuple[MemorySource, ReadMemory | None]:
    """The memory to sample: that of the GPU if one is in use, otherwise that of the process."""
    if torch.cuda.is_initialized():
        return "cuda", torch.cuda.memory_allocated
    try:
        file, page = os.open("/proc/self/statm", os.O_RDONLY), os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return "process", None
    return "process", lambda: int(os.pread(file, 128, 0).split()[1]) * page
