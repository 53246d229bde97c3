"""Seeds for long random tests: others on every day, the same during one."""

from __future__ import annotations

from datetime import date

_A_DAY = 1_000_000


def seeds_of_the_day(count: int) -> range:
    """Return so many seeds, at most a million. A test states the seed of a failure."""
    assert count <= _A_DAY
    first = date.today().toordinal() * _A_DAY
    return range(first, first + count)
