"""When the garbage collector runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

GROWTH = 500_000
"""By so many objects the memory may grow before the collector comes by: less than 100 MB."""


class Collection:
    """Collects garbage where much may have come together, and else lets it lie."""

    def after_a_file(self) -> None:
        # The first count is that of the objects made and not freed since the last collection.
        if gc.get_count()[0] > GROWTH:
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
