"""The process for the analysis, and its counterpart in the server.

The server answers requests while this process works; if it dies, the server starts another one.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from queue import SimpleQueue

from shapefix.engine.gc_control import gc_paused
from shapefix.engine.settings import CheckOptions
from shapefix.light_dataclasses import dataclass
from shapefix.server.messages import (
    AnalysisLost,
    Answer,
    GuardOrder,
    Order,
    RepairOrder,
    TextUpdate,
    ValuesFound,
)


@dataclass(frozen=True)
class _Ended:
    """The process at the other end of a pipe has ended."""

    pipe: Connection


class AnalysisProcess:
    """Starts the process for the analysis at the first order, and another one after it has died.

    take is called in a thread with each answer.
    """

    def __init__(self, options: CheckOptions, take: Callable[[Answer], None]) -> None:
        self._options = options
        self._take = take
        self._orders: SimpleQueue[Order | _Ended | None] = SimpleQueue()
        self._open: dict[str, tuple[int, bytes]] = {}
        self._in_work: set[str] = set()
        """Files without a complete answer; one of them may be what the process dies of."""
        self._pipe: Connection | None = None
        # A pipe is full soon: the server never waits for a process that is at work.
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()

    def send(self, order: Order) -> None:
        """Send an order."""
        self._orders.put(order)

    def close(self) -> None:
        """End the process."""
        self._orders.put(None)
        self._writer.join(5)

    def _write(self) -> None:
        while True:
            order = self._orders.get()
            if order is None:
                if self._pipe is not None:
                    self._pipe.close()
                return
            if isinstance(order, _Ended):
                if order.pipe is self._pipe:
                    self._restart()
                continue
            if isinstance(order, TextUpdate):
                self._options = order.options or self._options
                for path in order.closed:
                    self._open.pop(path, None)
                    self._in_work.discard(path)
                self._open.update(order.texts)
                self._in_work.update(order.texts)
            if self._pipe is None:
                self._start()
                if isinstance(order, TextUpdate):
                    continue
            self._put(order)

    def _start(self) -> None:
        """Start a process with all open texts."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        context.Process(target=_work, args=(theirs, self._options), daemon=True).start()
        theirs.close()
        threading.Thread(target=self._read, args=(self._pipe,), daemon=True).start()
        self._in_work.update(self._open)
        self._put(TextUpdate(dict(self._open)))

    def _put(self, order: Order) -> None:
        # If the process has died, the thread that reads from it knows.
        with contextlib.suppress(OSError):
            if self._pipe is not None:
                self._pipe.send(order)

    def _restart(self) -> None:
        """Start another process; the last texts, its possible cause of death, wait for their next change."""
        lost, self._in_work, self._pipe = tuple(sorted(self._in_work)), set(), None
        for path in lost:
            self._open.pop(path, None)
        self._take(AnalysisLost(lost))
        if self._open:
            self._start()

    def _read(self, pipe: Connection) -> None:
        while True:
            try:
                answer = pipe.recv()
            except (EOFError, OSError):
                self._orders.put(_Ended(pipe))
                return
            if isinstance(answer, ValuesFound):
                # They are the last step for a text.
                self._in_work.discard(answer.path)
            self._take(answer)


def _work(pipe: Connection, options: CheckOptions) -> None:
    """Answer orders until the pipe is closed."""
    # Ctrl-C is for the server. What is printed by accident must not get into the answers of the server.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)
    waiting: Order | None = None
    try:
        with gc_paused() as collector:
            # Imported here: the server needs nothing of it.
            from shapefix.server.workspace_analyzer import WorkspaceAnalyzer

            gc.freeze()
            analyzer = WorkspaceAnalyzer(options, pipe.poll)
            while True:
                order = waiting or pipe.recv()
                waiting = None
                if isinstance(order, RepairOrder):
                    pipe.send(analyzer.repair(order))
                elif isinstance(order, GuardOrder):
                    pipe.send(analyzer.guard(order))
                else:
                    while waiting is None and pipe.poll():
                        later = pipe.recv()
                        if isinstance(later, TextUpdate):
                            order = order.then(later)
                        else:
                            waiting = later
                    analyzer.update(order)
                if waiting is None:
                    for answer in analyzer.check():
                        pipe.send(answer)
                    for values in analyzer.values():
                        pipe.send(values)
                collector.collect_if_grown()
    except (EOFError, OSError):
        return
