"""When the garbage collector runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

FILES = 200
"""After so many files the collector comes by."""


class Collection:
    """Counts files, and collects garbage only now and then."""

    def __init__(self) -> None:
        self._files = 0

    def after_a_file(self) -> None:
        self._files += 1
        if self._files % FILES == 0:
            gc.collect()


@contextmanager
def seldom_collected() -> Iterator[Collection]:
    """Keep the garbage collector from looking at every new tree, a third of the time of an analysis.

    Trees hold no cycles, and a run breaks those that it makes: nearly everything is freed without it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield Collection()
    finally:
        if was_enabled:
            gc.enable()
