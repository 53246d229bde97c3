"""Loops of calls ask the system for no memory, at whatever depth of nested calls they run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shapefix.engine.frame_memory import with_memory_for_frames

resource = pytest.importorskip("resource", reason="counts page faults of POSIX systems")
CALLS = 300
DEPTHS = range(160)
"""Frames take more than 100 bytes, so that these depths cross a border of 16 KB."""


def leaf() -> None:
    return None


def loop() -> int:
    """Call a function often; return how many pages the system had to provide."""
    before: int = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        leaf()
    after: int = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    return after - before


def below(depth: int, function: Callable[[], int]) -> int:
    return function() if depth == 0 else below(depth - 1, function)


def test_no_depth_of_calls_asks_for_memory_at_each_call() -> None:
    for depth in DEPTHS:
        assert with_memory_for_frames(below, depth, loop) < CALLS / 2, depth


def test_results_and_errors_pass_through() -> None:
    def divide(number: int, *, by: int) -> float:
        return number / by

    assert with_memory_for_frames(divide, 1, by=2) == 0.5
    with pytest.raises(ZeroDivisionError):
        with_memory_for_frames(divide, 1, by=0)
