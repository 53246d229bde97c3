"""Random choice of the operations of a chain."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import random_results
import random_steps
from random_chains import Chain, Step

Draw = Callable[[Chain, random.Random], Step | None]

DRAWS: Sequence[tuple[Draw, int]] = (
    (random_steps.a_slice, 8),
    (random_steps.a_symbolic_slice, 2),
    (random_steps.a_select, 4),
    (random_steps.a_narrow, 3),
    (random_steps.a_piece, 4),
    (random_steps.a_permutation, 8),
    (random_steps.a_new_dimension, 2),
    (random_steps.a_squeeze, 2),
    (random_steps.an_expansion, 3),
    (random_results.a_copy, 6),
    (random_results.a_pair, 4),
    (random_results.a_result, 8),
    (random_steps.an_advanced_index, 4),
    (random_results.a_convolution, 4),
    (random_steps.a_reshape, 4),
    (random_steps.a_view, 4),
    (random_steps.an_odd_layout, 2),
)


def draw(chain: Chain, rng: random.Random) -> Step:
    """Draw the next operation of a chain."""
    weights = [weight for _, weight in DRAWS]
    while True:
        kind, _ = rng.choices(DRAWS, weights)[0]
        drawn = kind(chain, rng)
        if drawn is not None:
            return drawn
