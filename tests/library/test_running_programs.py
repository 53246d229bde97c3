"""Random programs that run, by subject: nothing false is known of them, and nothing false is reported."""

from __future__ import annotations

import pytest
import random_conversions
import random_copies
import random_ranks
from checking import Check
from day_seeds import seeds_of_the_day
from running_programs import check_programs

DRAFTS = {
    "buffers and dtypes after conversions": random_conversions.draft,
    "strides after copies": random_copies.draft,
    "results of unbatched inputs": random_ranks.draft,
}
PROGRAMS, BLOCK = 12, 60
BLOCKS_OF_THE_DAY = 12


@pytest.mark.slow
@pytest.mark.parametrize("subject", DRAFTS)
def test_nothing_false_is_said_of_programs_that_run(subject: str, check: Check) -> None:
    check_programs(DRAFTS[subject], range(PROGRAMS), check)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("block", range(BLOCKS_OF_THE_DAY))
@pytest.mark.parametrize("subject", DRAFTS)
def test_nothing_false_is_said_of_the_programs_of_the_day(subject: str, block: int, check: Check) -> None:
    seeds = seeds_of_the_day(BLOCKS_OF_THE_DAY * BLOCK)
    check_programs(DRAFTS[subject], seeds[block * BLOCK : (block + 1) * BLOCK], check)
