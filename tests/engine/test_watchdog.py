"""The clock of a file counts what the system does for it, too."""

from __future__ import annotations

import itertools
import os
import time
from typing import NamedTuple

import pytest

from shapefix.engine.watchdog import Watchdog
from shapefix.interpreter.budget import OutOfBudget, Resource


class Times(NamedTuple):
    """What os.times() returns, as far as it is read."""

    user: float
    system: float


def spin(seconds: float) -> None:
    """Take CPU time in Python code, where signals are handled."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(100))


def test_memory_asked_for_again_and_again_ends_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count()
    monkeypatch.setattr(os, "times", lambda: Times(0.0, 2.0 * next(seconds)))
    watchdog = Watchdog()
    with pytest.raises(OutOfBudget) as raised, watchdog.stopping_after(4.0):
        spin(2)
    assert raised.value.resource is Resource.TIME


def test_a_little_of_the_system_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter((0.0,))
    monkeypatch.setattr(os, "times", lambda: Times(0.0, next(seconds, 0.4)))
    with Watchdog().stopping_after(0.01):
        spin(0.2)
