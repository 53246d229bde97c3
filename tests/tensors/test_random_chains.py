"""Random chains of operations: constants always agree with torch, symbols agree or are undecided."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable

import pytest
import torch
from day_seeds import seeds_of_the_day
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from random_chains import advance, judge, random_target, start
from random_draws import draw

pytestmark = pytest.mark.slow

CHAINS_OF_EACH = 20
"""Number of chains per seed that hypothesis draws."""


def run_chains(seed: int, seen: Counter[str], opaque: bool) -> None:
    for number in range(CHAINS_OF_EACH):
        rng = random.Random(f"{seed} {number}")
        torch.manual_seed(rng.getrandbits(32))
        chain = start(rng, opaque)
        seen["chains"] += 1
        for _ in range(rng.randint(0, 6)):
            seen["operations"] += 1
            if not advance(chain, draw(chain, rng)):
                break
        else:
            judge(chain, *random_target(chain, rng))
            judge(chain, *random_target(chain, rng))
        seen.update(chain.verdicts)


@pytest.fixture(autouse=True)
def _one_quiet_thread() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")


def run_all(
    opaque: bool,
    chains: int,
    unknown_at_most: float,
    record_property: Callable[[str, object], None],
    first: int = 0,
) -> None:
    """Run random chains, drawn from one seed, and assert how many are judged."""
    seen: Counter[str] = Counter()

    @seed(first)
    @settings(
        max_examples=chains // CHAINS_OF_EACH,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**32 - 1))
    def run(drawn: int) -> None:
        run_chains(drawn, seen, opaque)

    run()
    assert seen["chains"] >= chains
    unknown = seen["Unknown"] / (seen["Legal"] + seen["Illegal"] + seen["WrongNumel"] + seen["Unknown"])
    record_property("chains", dict(seen))
    print(f"{dict(seen)}, unknown {unknown:.1%}")
    assert unknown <= unknown_at_most
    # The chains reached every verdict, and illegal views whose conditions hold.
    assert min(seen["Legal"], seen["Illegal applies"], seen["WrongNumel"]) >= 5


kinds = pytest.mark.parametrize(
    ("opaque", "chains", "unknown_at_most"),
    [(False, 3000, 0.08), (True, 1200, 0.5)],
    ids=["contiguous", "unknown"],
)


@kinds
def test_chains(
    opaque: bool, chains: int, unknown_at_most: float, record_property: Callable[[str, object], None]
) -> None:
    run_all(opaque, chains, unknown_at_most, record_property)


@pytest.mark.parametrize("drawn", [1033, 3232])
def test_chains_with_a_wrong_layout_before(drawn: int) -> None:
    run_chains(drawn, Counter(), opaque=False)


@pytest.mark.long
@kinds
def test_chains_of_the_day(
    opaque: bool, chains: int, unknown_at_most: float, record_property: Callable[[str, object], None]
) -> None:
    run_all(opaque, 40 * chains, unknown_at_most, record_property, seeds_of_the_day(1).start)
