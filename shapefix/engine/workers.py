"""Check files in several processes. If a process dies, only its current file is lost."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING

from shapefix.diagnostics import Failure
from shapefix.engine.gc_control import gc_paused
from shapefix.engine.tasks import FileChecker, FileResult, FileTask
from shapefix.light_dataclasses import dataclass
from shapefix.sources.text import SourceText

if TYPE_CHECKING:
    from multiprocessing.context import ForkContext, SpawnContext
    from multiprocessing.process import BaseProcess

Chunk = tuple[FileTask, ...]
"""Tasks for one worker, in a row because they share parsed modules."""


@dataclass(eq=False)
class _Worker:
    """A worker process, our end of its pipe, and its unfinished tasks."""

    process: BaseProcess
    pipe: Connection
    unfinished: deque[FileTask] = field(default_factory=deque)


def results_of(
    chunks: Iterable[Chunk], processes: int, source: Callable[[str], SourceText]
) -> Iterator[FileResult]:
    """Yield the result of every task in the order of completion.

    The next chunk is read when a worker is free, so few of them are in memory. source must be picklable. A
    worker that dies (out of memory, crash in native code) leaves a Failure for the file that it was checking.
    """
    pending = iter(chunks)
    unstarted: deque[Chunk] = deque()  # chunks of workers that died
    workers: list[_Worker] = []
    try:
        while True:
            idle = [worker for worker in workers if not worker.unfinished]
            while idle or len(workers) < processes:
                chunk = unstarted.popleft() if unstarted else next(pending, None)
                if chunk is None:
                    break
                if not idle:
                    workers.append(_start_worker(source))
                    idle.append(workers[-1])
                worker = idle.pop()
                worker.unfinished.extend(chunk)
                if not _send(worker, chunk):
                    yield from _reap_worker(worker, workers, unstarted)
            busy = [worker for worker in workers if worker.unfinished]
            if not busy:
                return
            ready = wait([worker.pipe for worker in busy])
            for worker in busy:
                if worker.pipe not in ready:
                    continue
                try:
                    result = worker.pipe.recv()
                except (EOFError, OSError):
                    yield from _reap_worker(worker, workers, unstarted)
                else:
                    worker.unfinished.popleft()
                    yield result
    finally:
        for worker in workers:
            worker.process.kill()
        for worker in workers:
            worker.process.join()


def _start_worker(source: Callable[[str], SourceText]) -> _Worker:
    # A forked process starts with all imports; forking is safe only on Linux.
    context: ForkContext | SpawnContext = (
        multiprocessing.get_context("fork")
        if sys.platform == "linux"
        else multiprocessing.get_context("spawn")
    )
    our_end, worker_end = context.Pipe()
    process = context.Process(target=_work, args=(worker_end, source), daemon=True)
    process.start()
    worker_end.close()
    return _Worker(process, our_end)


def _send(worker: _Worker, chunk: Chunk) -> bool:
    try:
        worker.pipe.send(chunk)
    except OSError:
        return False
    return True


def _reap_worker(worker: _Worker, workers: list[_Worker], unstarted: deque[Chunk]) -> Iterator[FileResult]:
    """Remove a dead worker: its current task becomes a Failure, its other tasks are unstarted again."""
    workers.remove(worker)
    worker.pipe.close()
    worker.process.join()
    task = worker.unfinished.popleft()
    if worker.unfinished:
        unstarted.append(tuple(worker.unfinished))
    message = f"the process that analyzed it {_exit_reason(worker.process.exitcode)}; please report it"
    yield FileResult(task.path, failures=(Failure(task.path, message),), cacheable=False)


def _exit_reason(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"was ended by {name}" + (", possibly out of memory" if name == "SIGKILL" else "")
    return f"ended with exit code {code}"


def _work(pipe: Connection, source: Callable[[str], SourceText]) -> None:
    """Receive chunks and send results until the pipe is closed."""
    # Ctrl-C is for the main process, which ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        # The main process, forked with this handler, reports what is known; `timeout` sends it to both.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    checker = FileChecker(source)
    try:
        with gc_paused(until_exit=True) as collector:
            while True:
                for task in pipe.recv():
                    pipe.send(checker.check(task))
                    collector.collect_if_grown()
    except (EOFError, OSError):
        return
