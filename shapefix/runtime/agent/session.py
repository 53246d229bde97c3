"""What the hooks share: how far the script has come, and how it is stopped once enough is known."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any, NoReturn

_encoded = json.JSONEncoder(default=str).encode


class StopProbe(BaseException):
    """Enough is known. No Exception, so that `except Exception` in the script lets it through."""


class Observations:
    """A file of JSON lines, each written at once: the process may die in C++ at any time.

    Only the process that the probe started writes; its forks say nothing.
    """

    def __init__(self, path: str) -> None:
        self._file: IO[str] = open(path, "a", encoding="utf-8")  # noqa: PTH123, SIM115
        self._process = os.getpid()
        self._start = time.monotonic()
        self._lock = threading.RLock()

    def write(self, kind: str, **fields: Any) -> None:
        """Add one observation, with the seconds since the start."""
        if os.getpid() != self._process:
            return
        at = round(time.monotonic() - self._start, 4)
        line = _encoded({"kind": kind, "at": at, **fields})
        with self._lock:
            self._file.write(line + "\n")
            self._file.flush()


@dataclass
class Session:
    """One run: what was asked for, and what has happened so far.

    depth counts the watched calls (modules, loaders, losses, backward, steps) that are running; shortened
    says that a loop of the script was ended early, so that what fails later may come of that; sizes_only
    says that what is on the GPU has no values, and guess is where one was read that nobody knows, in the
    call of a model that is running. stuck is asked whether this process waits for
    what will not come. phase is told when a part of a training step begins: forward,
    loop, backward or step, and None when the step is made.
    """

    observations: Observations
    wanted_steps: int = 1
    sizes_only: bool = False
    steps: int = 0
    backwards: int = 0
    model_calls: int = 0
    collectives: int = 0
    active_passes: int = 0
    evaluated: bool = False
    shortened: bool = False
    depth: int = 0
    stopped: str | None = None
    stopped_at: float = 0.0
    ended: bool = False
    pending: list[Any] = field(default_factory=list)
    thread: int = field(default_factory=threading.get_ident)
    guess: Any = None
    process: int = field(default_factory=os.getpid)
    stuck: Callable[[], bool] = lambda: False
    phase: Callable[[str | None], None] = lambda phase: None
    _ignored: int = 0

    def watches(self) -> bool:
        """Whether what happens now is the script's own course: its main thread, in its first process."""
        return threading.get_ident() == self.thread and self.watches_process()

    def watches_process(self) -> bool:
        """Whether this is the process that the probe has started, not a fork of it."""
        return os.getpid() == self.process

    def stop(self, why: str, unforeseen: bool = False) -> NoReturn:
        """End the script from inside; by force where it has caught that three times.

        unforeseen says that it could not go on: what follows depends on values that are not there.
        """
        if self.stopped is None:
            self.stopped, self.stopped_at = why, time.monotonic()
            self.observations.write("stop", why=why, unforeseen=unforeseen)
        else:
            self._ignored += 1
            if self._ignored > 3:
                self.end("stopped", forced=True)
                leave(0)
        raise StopProbe(self.stopped)

    def go_on(self) -> None:
        """Raise again where the script has caught the stop and went on."""
        if self.stopped is not None:
            self.stop(self.stopped)

    def cut(self, what: str, site: Any) -> None:
        """Note that a loop of the script ends earlier than it would."""
        if not self.shortened:
            self.shortened = True
            self.observations.write("shortened", what=what, site=site)

    def end(self, how: str, **fields: Any) -> None:
        """Write how it ended, once."""
        if not self.ended:
            self.ended = True
            self.phase(None)
            self.observations.write("end", how=how, **memory(), **fields)


def memory() -> dict[str, Any]:
    """The peak of memory in bytes: of the process, and of the GPU where one was used."""
    known: dict[str, Any] = {}
    try:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        known["peak_process"] = peak if sys.platform == "darwin" else peak * 1024
    except ImportError:
        pass
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_initialized():
            known["peak_cuda"] = torch.cuda.max_memory_allocated()
            known["reserved_cuda"] = torch.cuda.max_memory_reserved()
    except Exception:
        pass
    return known


_leave = os._exit


def leave(code: int) -> NoReturn:
    """End this process now, with what it has printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    _leave(code)
