"""Random loops of many iterations: what is known after them is so in the run."""

from __future__ import annotations

import pytest
from day_seeds import seeds_of_the_day
from program_runs import Tally, disagreements
from random_loops import write

BLOCKS, PROGRAMS = 2, 40
BLOCKS_OF_THE_DAY = 20


def compare(seeds: range) -> None:
    """Assert that what the interpreter knows of some scripts with loops is so."""
    tally = Tally()
    for seed in seeds:
        text = write(seed)
        problems = disagreements(text, (), {}, seed, tally)
        assert not problems, "\n".join((f"seed {seed}", *problems, text))
    assert tally.known > 6 * PROGRAMS


def test_what_is_known_after_a_loop_is_so() -> None:
    compare(range(PROGRAMS))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(1, BLOCKS))
def test_what_is_known_after_many_loops_is_so(block: int) -> None:
    compare(range(block * PROGRAMS, (block + 1) * PROGRAMS))


@pytest.mark.long
@pytest.mark.parametrize("block", range(BLOCKS_OF_THE_DAY))
def test_what_is_known_after_the_loops_of_the_day_is_so(block: int) -> None:
    seeds = seeds_of_the_day(BLOCKS_OF_THE_DAY * PROGRAMS)
    first = seeds.start + block * PROGRAMS
    compare(range(first, first + PROGRAMS))
