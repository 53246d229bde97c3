"""Wrong arguments of library functions are answered like right ones: without an internal error."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from day_seeds import seeds_of_the_day
from odd_calls import odd_calls, script

from shapefix.checks.rules import RULES
from shapefix.engine.tasks import FileChecker, FileTask
from shapefix.sources.text import read_source

TOGETHER = 60


def internal_errors(calls: list[str], folder: Path) -> Iterator[str]:
    """Find the calls with an internal error, one by one."""
    task = FileTask(str(folder / "main.py"), script(calls).encode(), str(folder), frozenset(RULES))
    failures = FileChecker(read_source).check(task).failures
    assert not failures or "internal error" in failures[0].message, failures
    if failures and len(calls) == 1:
        yield f"{calls[0]}: {failures[0].message}"
    elif failures:
        middle = len(calls) // 2
        yield from internal_errors(calls[:middle], folder)
        yield from internal_errors(calls[middle:], folder)


@pytest.mark.slow
def test_some_odd_calls(tmp_path: Path) -> None:
    calls = odd_calls(random.Random(0))
    assert len(calls) > 2_000
    assert list(internal_errors(calls[:600], tmp_path)) == []


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("seed", seeds_of_the_day(10))
def test_odd_calls(seed: int, tmp_path: Path) -> None:
    calls = odd_calls(random.Random(seed))
    for start in range(0, len(calls), TOGETHER):
        assert list(internal_errors(calls[start : start + TOGETHER], tmp_path)) == [], seed


@pytest.mark.parametrize(
    "call",
    [
        "range()",
        "range(1, 2, 3, 4)",
        "z.median(x)",
        "z.mode(x)",
        "operator.matmul(x)",
        "operator.matmul(x, x, x)",
        "numpy.zeros(3).__getitem__()",
    ],
)
def test_wrong_numbers_and_kinds_of_arguments(call: str, tmp_path: Path) -> None:
    assert list(internal_errors([call], tmp_path)) == []
