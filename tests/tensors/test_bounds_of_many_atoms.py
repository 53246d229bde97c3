"""The search for a bound ends soon, whatever the number of quotients in a size."""

from __future__ import annotations

import time

import pytest

from shapefix.tensors.bounds import at_least, same
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import floor_divide


def _sum(symbol: Size, count: int) -> Size:
    total = Size.of(0)
    for divisor in range(2, count + 2):
        total = total + floor_divide(symbol + divisor, Size.of(divisor))
    return total


@pytest.mark.parametrize("count", [4, 12, 30])
def test_a_comparison_of_many_quotients_ends(count: int) -> None:
    height, width = Size.symbol("H"), Size.symbol("W")
    before = time.process_time()
    assert same(_sum(height, count), _sum(width * 2, count)) is None
    assert at_least(_sum(height, count), _sum(width * 2, count)) is None
    assert time.process_time() - before < 5


def test_sums_of_quotients_are_still_compared() -> None:
    height = Size.symbol("H")
    assert at_least(_sum(height, 6), 6) is True
    assert same(_sum(height, 3), _sum(height, 3) + 1) is False
    assert at_least(floor_divide(height, Size.of(2)) * 2, height + 1) is False
