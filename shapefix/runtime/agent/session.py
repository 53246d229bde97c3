"""State shared by all hooks: the progress of the script, and its early end."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import IO, Any, Literal, NoReturn

from ..protocol import EndLine, EndReason, Line, LineSink, LoopTruncatedLine, StopLine, UserPlace

_encoded = json.JSONEncoder(default=str).encode


class StopProbe(BaseException):
    """Ends the script. Not an Exception: `except Exception` in the script does not catch it."""


class LineFile:
    """A file of JSON lines, each flushed at once, since the process may die in C++ at any time.

    Only the process that the probe started writes; its forks write nothing.
    """

    def __init__(self, path: str) -> None:
        self._file: IO[str] = open(path, "a", encoding="utf-8")  # noqa: PTH123, SIM115
        self._process = os.getpid()
        self._start = time.monotonic()
        self._lock = threading.RLock()

    def write(self, line: Line) -> None:
        """Add a line, with the seconds since the start to help debugging."""
        if os.getpid() != self._process:
            return
        text = _encoded({**line, "at": round(time.monotonic() - self._start, 4)})
        with self._lock:
            self._file.write(text + "\n")
            self._file.flush()


@dataclass
class Session:
    """One run: its options and its progress.

    depth counts the watched calls (modules, loaders, losses, backward, steps) that are running.
    loop_truncated says that a loop of the script was ended early; later exceptions may come from that.
    takes_extra_batches says that the script may get batches after the wanted steps; extra_batch is the kind
    of the running one, extra_batches their number. extra_places are those
    of their loaders. own_seconds is the time of the probe's own trials. overfits says that all steps get the
    first batch. evaluation is how much of it runs after the wanted steps. batches counts all of all loaders.
    pass_number is that of the running pass over a loader, each with its own; pass_loader is the loader, and
    trained_loaders are those in whose passes a training step was made. pass_batches is the number of
    batches of the last pass over a loader, trained_batches that of a pass with a training step; None if not
    known.
    batch_rows are the samples of the last batch of a loader, loss_rows those of the last loss.
    sizes_only says that tensors on the GPU have no values; guessed_at is where the running model read a value
    that is not known. is_deadlocked says whether this process waits for another one in vain. on_phase is
    called when a part of a training step begins: forward, loop, backward or step, and None after the step.
    on_loading and on_loaded are called around the loading of a batch, with its samples; loading is true then.
    """

    sink: LineSink
    wanted_steps: int = 1
    sizes_only: bool = False
    steps: int = 0
    backward_calls: int = 0
    model_calls: int = 0
    collectives: int = 0
    active_passes: int = 0
    loading: bool = False
    pass_number: int = 0
    pass_loader: int | None = None
    trained_loaders: set[int | None] = field(default_factory=set)
    pass_batches: int | None = None
    trained_batches: int | None = None
    evaluated: bool = False
    takes_extra_batches: bool = False
    overfits: bool = False
    evaluation: Literal["none", "short", "full"] = "short"
    batches: int = 0
    extra_batch: str | None = None
    extra_batches: int = 0
    extra_places: set[str] = field(default_factory=set)
    own_seconds: float = 0.0
    batch_rows: int | None = None
    loss_rows: int | None = None
    loop_truncated: bool = False
    depth: int = 0
    stopped: str | None = None
    stopped_at: float = 0.0
    ended: bool = False
    pending: list[Any] = field(default_factory=list)
    thread: int = field(default_factory=threading.get_ident)
    guessed_at: UserPlace | None = None
    process: int = field(default_factory=os.getpid)
    before_end: Callable[[], None] = lambda: None
    after_end: Callable[[], None] = lambda: None
    is_deadlocked: Callable[[], bool] = lambda: False
    on_batch_requested: Callable[[FrameType], None] = lambda frame: None
    on_phase: Callable[[str | None], None] = lambda phase: None
    on_loading: Callable[[], None] = lambda: None
    on_loaded: Callable[[int | None], None] = lambda rows: None
    _ignored: int = 0

    def watches(self) -> bool:
        """Whether this is the main thread of the script, in the probe's own process."""
        return threading.get_ident() == self.thread and self.watches_process()

    def watches_process(self) -> bool:
        """Whether this is the probe's own process, not a fork of it."""
        return os.getpid() == self.process

    def stop(self, reason: str, unpredictable: bool = False) -> NoReturn:
        """End the script by an exception; end the process after the script caught it three times.

        unpredictable says that the rest of the script depends on values that are not known.
        """
        if self.stopped is None:
            self.stopped, self.stopped_at = reason, time.monotonic()
            self.sink.write(StopLine(kind="stop", reason=reason, unpredictable=unpredictable))
        else:
            self._ignored += 1
            if self._ignored > 3:
                self.end("stopped", forced=True)
                exit_now(0)
        raise StopProbe(self.stopped)

    def raise_if_stopped(self) -> None:
        """Raise StopProbe again if the script caught it and went on."""
        if self.stopped is not None:
            self.stop(self.stopped)

    def truncate_loop(self, reason: str, site: UserPlace | None) -> None:
        """Note that a loop of the script ends earlier than it would."""
        if not self.loop_truncated:
            self.loop_truncated = True
            self.sink.write(LoopTruncatedLine(kind="loop_truncated", reason=reason, site=site))

    def end(
        self,
        how: EndReason,
        *,
        site: UserPlace | None = None,
        message: str | None = None,
        code: int | None = None,
        usage_error: bool = False,
        exceptions: list[int] | None = None,
        seconds: float | None = None,
        forced: bool = False,
    ) -> None:
        """Write how the script ended, once."""
        if not self.ended:
            self.ended = True
            self.on_phase(None)
            self.before_end()
            peak_cuda, reserved_cuda = _peak_cuda()
            self.sink.write(
                EndLine(
                    kind="end",
                    how=how,
                    site=site,
                    message=message,
                    code=code,
                    usage_error=usage_error,
                    exceptions=exceptions or [],
                    seconds=seconds,
                    forced=forced,
                    peak_process=_peak_process(),
                    peak_cuda=peak_cuda,
                    reserved_cuda=reserved_cuda,
                )
            )
            self.after_end()


def _peak_process() -> int | None:
    """The peak memory of this process in bytes, if the system measures it."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _peak_cuda() -> tuple[int | None, int | None]:
    """The peaks of allocated and of reserved memory on the GPU in bytes, if one was used."""
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_initialized():
            return torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    except Exception:
        pass
    return None, None


AFTER_STEP = "after step "
"""How the reason of a stop after the wanted steps begins."""


def steps_done(steps: int) -> str:
    """The reason to stop after some training steps."""
    return f"{AFTER_STEP}{steps}"


_exit = os._exit


def exit_now(code: int) -> NoReturn:
    """End this process at once, with its output flushed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    _exit(code)
