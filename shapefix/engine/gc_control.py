"""Run the garbage collector rarely."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

GROWTH = 1_000_000
"""New objects between two collections; they take less than 200 MB."""


class PausedCollector:
    """Collects garbage only after the number of objects has grown a lot."""

    def collect_if_grown(self) -> None:
        """Collect garbage if many objects are new."""
        # The first count is the number of objects made and not freed since the last collection.
        if gc.get_count()[0] > GROWTH:
            gc.collect()


@contextmanager
def gc_paused(until_exit: bool = False) -> Iterator[PausedCollector]:
    """Pause the garbage collector; it would take a third of the time of an analysis.

    Trees have no cycles, and a run breaks its own: reference counting frees nearly everything. until_exit
    leaves it paused: a process about to end would look through all objects once more.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield PausedCollector()
    finally:
        if was_enabled and not until_exit:
            gc.enable()
