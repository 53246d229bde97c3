"""Several processes check files; one that dies costs only its own file."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shapefix.engine.tasks import FileChecker, FileResult, FileTask
from shapefix.engine.workers import Chunk, results_of
from shapefix.sources.text import read_source

VIEW = b"import torch\nx = torch.zeros(4, 6, 8)[:, :-1].view(-1, 8)\n"
RULES = frozenset({"SF101"})


def tasks(*names: str) -> Chunk:
    return tuple(FileTask(f"/project/{name}.py", VIEW, "/project", RULES) for name in names)


def by_name(results: Iterator[FileResult]) -> dict[str, FileResult]:
    return {Path(result.path).stem: result for result in results}


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Callable[[], None]]], None]:
    """Let the process that checks a file of this name end in some way."""

    def arrange(ends: dict[str, Callable[[], None]]) -> None:
        result = FileChecker.check

        def perhaps(self: FileChecker, task: FileTask) -> FileResult:
            ends.get(Path(task.path).stem, lambda: None)()
            return result(self, task)

        monkeypatch.setattr(FileChecker, "check", perhaps)

    return arrange


def kill(number: signal.Signals) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def test_every_task_has_a_result() -> None:
    chunks = [tasks("a", "b"), tasks("c"), tasks("d", "e", "f")]
    found = by_name(results_of(chunks, 2, read_source))
    assert sorted(found) == ["a", "b", "c", "d", "e", "f"]
    assert {len(result.diagnostics) for result in found.values()} == {1}


def test_no_task_no_result() -> None:
    assert list(results_of([], 4, read_source)) == []


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (kill(signal.SIGSEGV), "was ended by SIGSEGV;"),
        (kill(signal.SIGKILL), "was ended by SIGKILL, possibly out of memory;"),
        (lambda: os._exit(3), "ended with exit code 3;"),
    ],
)
def test_a_worker_that_dies_costs_the_file_that_it_was_busy_with(
    dying: Callable[..., None], end: Callable[[], None], words: str
) -> None:
    dying({"b": end})
    found = by_name(results_of([tasks("a", "b", "c"), tasks("d")], 2, read_source))
    assert sorted(found) == ["a", "b", "c", "d"]
    (failure,) = found.pop("b").failures
    assert failure.message == f"the process that analyzed it {words} please report it"
    assert {len(result.diagnostics) for result in found.values()} == {1}


def test_even_when_all_of_them_die(dying: Callable[..., None]) -> None:
    dying({name: kill(signal.SIGKILL) for name in "abcdef"})
    found = by_name(results_of([tasks(*"abc"), tasks(*"def")], 2, read_source))
    assert [len(result.failures) for result in found.values()] == [1] * 6


def test_chunks_are_taken_when_a_worker_is_free_for_them() -> None:
    taken = 0

    def chunks() -> Iterator[Chunk]:
        nonlocal taken
        for number in range(20):
            taken += 1
            yield tasks(f"file{number}")

    results = results_of(chunks(), 2, read_source)
    next(results)
    assert taken <= 4
    assert len(list(results)) == 19


def test_whoever_stops_listening_leaves_no_process_behind() -> None:
    import multiprocessing

    # Workers of a DataLoader in another test may still be there.
    others = set(multiprocessing.active_children())
    results = results_of([tasks(f"file{number}") for number in range(20)], 3, read_source)
    next(results)
    assert set(multiprocessing.active_children()) - others
    results.close()  # type: ignore[attr-defined]
    assert not set(multiprocessing.active_children()) - others
