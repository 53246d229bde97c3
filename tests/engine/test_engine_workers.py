"""Several processes answer, and none of them can take the others' answers with it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shapefix.engine.tasks import Answer, Answerer, Question
from shapefix.engine.workers import Chunk, answered
from shapefix.sources.text import read_source

VIEW = b"import torch\nx = torch.zeros(4, 6, 8)[:, :-1].view(-1, 8)\n"
RULES = frozenset({"SF101"})


def questions(*names: str) -> Chunk:
    return tuple(Question(f"/project/{name}.py", VIEW, "/project", RULES) for name in names)


def by_name(answers: Iterator[Answer]) -> dict[str, Answer]:
    return {Path(answer.path).stem: answer for answer in answers}


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Callable[[], None]]], None]:
    """Let the process that answers for a name end in some way."""

    def arrange(ends: dict[str, Callable[[], None]]) -> None:
        answer = Answerer.answer

        def perhaps(self: Answerer, question: Question) -> Answer:
            ends.get(Path(question.path).stem, lambda: None)()
            return answer(self, question)

        monkeypatch.setattr(Answerer, "answer", perhaps)

    return arrange


def kill(number: signal.Signals) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def test_every_question_is_answered() -> None:
    chunks = [questions("a", "b"), questions("c"), questions("d", "e", "f")]
    found = by_name(answered(chunks, 2, read_source))
    assert sorted(found) == ["a", "b", "c", "d", "e", "f"]
    assert {len(answer.diagnostics) for answer in found.values()} == {1}


def test_no_question_no_answer() -> None:
    assert list(answered([], 4, read_source)) == []


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (kill(signal.SIGSEGV), "was ended by SIGSEGV;"),
        (kill(signal.SIGKILL), "was ended by SIGKILL, perhaps for want of memory;"),
        (lambda: os._exit(3), "ended with exit code 3;"),
    ],
)
def test_a_worker_that_dies_costs_the_file_that_it_was_busy_with(
    dying: Callable[..., None], end: Callable[[], None], words: str
) -> None:
    dying({"b": end})
    found = by_name(answered([questions("a", "b", "c"), questions("d")], 2, read_source))
    assert sorted(found) == ["a", "b", "c", "d"]
    (failure,) = found.pop("b").failures
    assert failure.message == f"the process that analysed it {words} please report it"
    assert {len(answer.diagnostics) for answer in found.values()} == {1}


def test_even_when_all_of_them_die(dying: Callable[..., None]) -> None:
    dying({name: kill(signal.SIGKILL) for name in "abcdef"})
    found = by_name(answered([questions(*"abc"), questions(*"def")], 2, read_source))
    assert [len(answer.failures) for answer in found.values()] == [1] * 6


def test_chunks_are_taken_when_a_worker_is_free_for_them() -> None:
    taken = 0

    def chunks() -> Iterator[Chunk]:
        nonlocal taken
        for number in range(20):
            taken += 1
            yield questions(f"file{number}")

    answers = answered(chunks(), 2, read_source)
    next(answers)
    assert taken <= 4
    assert len(list(answers)) == 19


def test_whoever_stops_listening_leaves_no_process_behind() -> None:
    import multiprocessing

    answers = answered([questions(f"file{number}") for number in range(20)], 3, read_source)
    next(answers)
    assert multiprocessing.active_children()
    answers.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()
