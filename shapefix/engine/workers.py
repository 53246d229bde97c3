"""Answers questions in several processes at once; one that dies costs the file that it was busy with."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING

from shapefix.diagnostics import Failure
from shapefix.engine.gc_control import seldom_collected
from shapefix.engine.tasks import Answer, Answerer, Question
from shapefix.sources.text import SourceText

if TYPE_CHECKING:
    from multiprocessing.context import ForkContext, SpawnContext
    from multiprocessing.process import BaseProcess

Chunk = tuple[Question, ...]
"""Questions that one worker answers in a row, because they share what has to be parsed for them."""


@dataclass(eq=False)
class _Worker:
    """A process, our end of the pipe to it, and what it has not answered yet."""

    process: BaseProcess
    pipe: Connection
    waiting: deque[Question] = field(default_factory=deque)


def answered(
    chunks: Iterable[Chunk], processes: int, source: Callable[[str], SourceText]
) -> Iterator[Answer]:
    """Yield the answer to every question of the chunks, in the order in which they come.

    A chunk is asked for when a worker is free for it, so that few of them are in memory. source must be
    something that multiprocessing can hand on. A worker that dies (killed for its memory, by a crash in
    native code) leaves a Failure for the file that it was busy with.
    """
    pending = iter(chunks)
    left_over: deque[Chunk] = deque()  # what workers that died had not begun
    workers: list[_Worker] = []
    try:
        while True:
            idle = [worker for worker in workers if not worker.waiting]
            while idle or len(workers) < processes:
                chunk = left_over.popleft() if left_over else next(pending, None)
                if chunk is None:
                    break
                if not idle:
                    workers.append(_started(source))
                    idle.append(workers[-1])
                worker = idle.pop()
                worker.waiting.extend(chunk)
                if not _sent(worker, chunk):
                    yield from _buried(worker, workers, left_over)
            busy = [worker for worker in workers if worker.waiting]
            if not busy:
                return
            ready = wait([worker.pipe for worker in busy])
            for worker in busy:
                if worker.pipe not in ready:
                    continue
                try:
                    answer = worker.pipe.recv()
                except (EOFError, OSError):
                    yield from _buried(worker, workers, left_over)
                else:
                    worker.waiting.popleft()
                    yield answer
    finally:
        for worker in workers:
            worker.process.kill()
        for worker in workers:
            worker.process.join()


def _started(source: Callable[[str], SourceText]) -> _Worker:
    # A forked process has everything imported already; only on Linux is forking safe.
    context: ForkContext | SpawnContext = (
        multiprocessing.get_context("fork")
        if sys.platform == "linux"
        else multiprocessing.get_context("spawn")
    )
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, source), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _sent(worker: _Worker, chunk: Chunk) -> bool:
    try:
        worker.pipe.send(chunk)
    except OSError:
        return False
    return True


def _buried(worker: _Worker, workers: list[_Worker], left_over: deque[Chunk]) -> Iterator[Answer]:
    """Blame the first unanswered question for the end of a worker, and put the others back."""
    workers.remove(worker)
    worker.pipe.close()
    worker.process.join()
    question = worker.waiting.popleft()
    if worker.waiting:
        left_over.append(tuple(worker.waiting))
    message = f"the process that analysed it {_end(worker.process.exitcode)}; please report it"
    yield Answer(question.path, failures=(Failure(question.path, message),), lasting=False)


def _end(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"was ended by {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")
    return f"ended with exit code {code}"


def _work(pipe: Connection, source: Callable[[str], SourceText]) -> None:
    """The life of a worker: chunks come in, answers go out, until the pipe is closed."""
    # Whoever pressed Ctrl-C means the main process, which ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answerer = Answerer(source)
    try:
        with seldom_collected() as collection:
            while True:
                for question in pipe.recv():
                    pipe.send(answerer.answer(question))
                    collection.after_a_file()
    except (EOFError, OSError):
        return
