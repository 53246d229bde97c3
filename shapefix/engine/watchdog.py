"""Last resort of bounded work: end an analysis after too much time or memory.

Analyses bound their own work by counting it, so that results do not depend on the machine. This clock ends
the ones that no count has foreseen.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from shapefix.interpreter.budget import OutOfBudget, Resource

RUN_SECONDS = 4.0
"""CPU time for parsing a file and running it in the interpreter."""
FILE_SECONDS = 4.6
"""CPU time for the same and all rules."""
MEGABYTES = 180
"""Memory that one file may add to the process."""
_SYSTEM_SECONDS = 0.5
"""The system's part that is free: it depends on the load of the machine, and most files need less."""
_TICK = 0.05
_GRACE_SECONDS = 0.3
_GRACE_MEGABYTES = 30


class Watchdog:
    """Clock of one file, from its creation on.

    Only the main thread of a process on a POSIX system can be stopped; elsewhere nothing is watched.
    """

    def __init__(self) -> None:
        self._start = _cpu_seconds()
        self._memory = _resident_megabytes()

    def _seconds(self) -> float:
        """CPU time taken; of the system's part only the excess over the free one."""
        user, system = (now - then for now, then in zip(_cpu_seconds(), self._start, strict=True))
        return user + max(0.0, system - _SYSTEM_SECONDS)

    @contextmanager
    def stopping_after(self, seconds: float) -> Iterator[None]:
        """Raise OutOfBudget in the block once the file has taken this CPU time, or too much memory."""
        if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
            yield
            return
        left = [seconds, max(self._memory + MEGABYTES, _resident_megabytes() + _GRACE_MEGABYTES)]

        def tick(number: int, frame: FrameType | None) -> None:
            resource = None
            if self._seconds() > left[0]:
                resource = Resource.TIME
            elif _resident_megabytes() > left[1]:
                resource = Resource.MEMORY
            if resource is not None:
                # Python swallows an exception raised in a callback of its own; the next tick raises again.
                left[0] = self._seconds() + _GRACE_SECONDS
                left[1] += _GRACE_MEGABYTES
                raise OutOfBudget(resource)

        around = signal.signal(signal.SIGVTALRM, tick)
        signal.setitimer(signal.ITIMER_VIRTUAL, _TICK, _TICK)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, around)


def _cpu_seconds() -> tuple[float, float]:
    """CPU time of this process, and that of the system for it."""
    used = os.times()
    return used.user, used.system


def _resident_megabytes() -> float:
    """Memory of this process now, or its peak if the system has no better figure."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
