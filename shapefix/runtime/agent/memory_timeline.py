"""Memory over the first training step, sampled from a thread of its own: nothing waits for it.

The samples of a phase are written when the next one begins.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import torch

from .session import Session

Read = Callable[[], int]

_INTERVAL = 0.002
_PHASES = 64  # as many as gradient accumulation may have for one step
_SAMPLES = 240  # of one phase; of more, every two become the larger one


class Timeline:
    """Samples the memory of one session, in bytes, from its first call of a model until a step is made.

    counted reads the memory of a GPU that is not there; None where there is none such.
    """

    def __init__(self, session: Session, counted: Read | None = None) -> None:
        self._session = session
        self._of = "fake" if counted is not None else ""
        self._read = counted
        self._phase: str | None = None
        self._samples: list[tuple[float, int]] = []
        self._stride, self._skipped = 1, 0
        self._lock = threading.Lock()
        self._phases = 0
        self._done = False

    def begin(self, phase: str | None) -> None:
        """A phase of the step begins: forward, loop, backward or step; None after the step, or at the end.

        The first forward begins it all.
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
            self._of, self._read = _reader()
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
        self._session.observations.write(
            "timeline",
            of=self._of,
            phase=self._phase,
            samples=[(round(at, 6), taken) for at, taken in samples],
        )


def _reader() -> tuple[str, Read | None]:
    """What can be read of memory: of the GPU where one is in use, else of the process."""
    if torch.cuda.is_initialized():
        return "cuda", torch.cuda.memory_allocated
    try:
        file, page = os.open("/proc/self/statm", os.O_RDONLY), os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return "", None
    return "process", lambda: int(os.pread(file, 128, 0).split()[1]) * page
