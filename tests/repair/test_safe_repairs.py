"""Generated programs run before and after their safe repairs: what ran still runs, with equal results."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from day_seeds import seeds_of_the_day
from repair_programs import FAMILIES, write
from repaired_pairs import Examined, examine

pytestmark = pytest.mark.slow

SAMPLE = 8
BLOCKS_OF_THE_DAY, PROGRAMS = 48, 120
PAIRS = 2000


@pytest.mark.parametrize("family", FAMILIES)
def test_what_ran_still_runs_and_what_raised_runs(family: str, tmp_path: Path) -> None:
    programs = [(seed, FAMILIES[family](random.Random(seed))) for seed in range(SAMPLE)]
    found = examine(programs, tmp_path)
    assert not found.problems, "\n\n".join(found.problems)
    assert found.pairs, "no program was repaired"


@pytest.mark.long
@pytest.mark.parametrize("number", range(BLOCKS_OF_THE_DAY))
def test_repairs_of_the_programs_of_the_day(
    number: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    seeds = seeds_of_the_day(BLOCKS_OF_THE_DAY * PROGRAMS)[number * PROGRAMS : (number + 1) * PROGRAMS]
    found = examine([(seed, write(seed)) for seed in seeds], tmp_path)
    record_property("counted", _counted(number, found))
    assert not found.problems, "\n\n".join(found.problems)
    assert found.count >= PAIRS / BLOCKS_OF_THE_DAY


def _counted(number: int, found: Examined) -> str:
    rules = ", ".join(f"{code} {count}" for code, count in sorted(found.pairs.items()))
    return f"block {number}: {found.count} pairs, {found.raised} raised before; repaired: {rules}"
