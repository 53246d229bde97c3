"""Comparisons of sizes decided by examples: a search for a proof finds nothing else."""

from __future__ import annotations

import random

import pytest

from shapefix.tensors import bounds
from shapefix.tensors.bounds import Bounds, assume_at_least, at_least, same
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import ceil_divide, floor_divide, maximum, minimum, modulo


def _size(draw: random.Random, symbols: list[Size], depth: int) -> Size:
    """Draw a size of symbols, numbers and operators."""
    if not depth or draw.random() < 0.3:
        return draw.choice(symbols) if draw.random() < 0.7 else Size.of(draw.randint(-3, 4))
    left, right = _size(draw, symbols, depth - 1), _size(draw, symbols, depth - 1)
    match draw.randrange(8):
        case 0 | 1:
            return left + right
        case 2:
            return left - right
        case 3 | 4:
            return left * right
        case 5:
            return minimum(left, right) if draw.random() < 0.5 else maximum(left, right)
        case 6:
            return floor_divide(left, Size.of(draw.randint(1, 4)))
    divisor = draw.choice(symbols)
    divide = draw.choice((floor_divide, ceil_divide, modulo))
    return divide(left, divisor)


@pytest.mark.parametrize("seed", range(20))
def test_examples_decide_nothing_that_is_proved_otherwise(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    decided = 0
    for _ in range(40):
        symbols = [Size.symbol(name, draw.choice((0, 1, 1, 1, 2, 7))) for name in "abcd"]
        one, two = _size(draw, symbols, 3), _size(draw, symbols, 3)
        assumed = draw.choice((Bounds(), assume_at_least([_size(draw, symbols, 2)], draw.randint(0, 4))))
        found = same(one, two, assumed), at_least(one, two, assumed)
        with monkeypatch.context() as patch:
            patch.setattr(bounds, "_examples", lambda *_: (1 << 80, -(1 << 80)))
            assert found == (same(one, two, assumed), at_least(one, two, assumed)), (one, two, assumed.least)
        least, most = bounds._examples((one - two).terms, assumed, 1)
        decided += least < 1 and most > -1
    assert decided > 5


def test_examples_keep_the_assumptions() -> None:
    size = Size.symbol("n")
    least, _ = bounds._examples((size - 10).terms, assume_at_least([size], 10), 0)
    assert least == 0
    rows = Size.symbol("rows")
    assumed = assume_at_least([size * rows], 50)
    assert assumed.facts
    least, _ = bounds._examples((size * rows - 50).terms, assumed, 0)
    assert least >= 0
