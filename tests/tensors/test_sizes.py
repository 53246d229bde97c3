"""Sizes: arithmetic, text and proofs."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapefix.tensors.bounds import assume_at_least, at_least, same
from shapefix.tensors.polynomials import Size, divide
from shapefix.tensors.quotients import (
    ceil_divide,
    floor_divide,
    maximum,
    minimum,
    modulo,
    quotient,
    substitute,
)
from shapefix.tensors.symbols import Symbol

B, T, V, H, C, k = (Size.symbol(name) for name in ("B", "T", "V", "H", "C", "k"))


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (Size.of(7), "7"),
        (Size.of(-2), "-2"),
        (T * V, "T*V"),
        (T - 1, "T - 1"),
        (T * V - V, "(T - 1)*V"),
        (B * T * V - B * V, "B*(T - 1)*V"),
        ((B - 1) * (T - 1), "(B - 1)*(T - 1)"),
        (2 * C + 4, "2*(C + 2)"),
        (3 - T, "3 - T"),
        (-T * V, "-T*V"),
        (T * T, "T*T"),
        (B * T + V, "B*T + V"),
        (floor_divide(C, H), "C // H"),
        (floor_divide(C, H) * V, "V*(C // H)"),
        (floor_divide(B * T, H), "(B*T) // H"),
        (floor_divide(T + 1, 2) - 1, "((T + 1) // 2) - 1"),
        (modulo(C, H), "C % H"),
        (minimum(k, T), "min(T, k)"),
        (maximum(k, T) - 1, "max(T, k) - 1"),
        (quotient(B * C, H), "(B*C) // H"),
    ],
)
def test_a_size_reads_as_a_person_would_write_it(size: Size, text: str) -> None:
    assert str(size) == text


def test_names_can_be_given_for_one_text() -> None:
    (symbol,) = T.symbols
    assert (T * V - V).text({symbol: "seq"}) == "(seq - 1)*V"


def test_equal_polynomials_are_one_key() -> None:
    assert (T - 1) * V == T * V - V
    assert hash((T - 1) * V) == hash(T * V - V)
    assert T + 0 == T
    assert Size.of(3) == 3
    assert Size.symbol("T") != Size.symbol("T")


def test_what_is_equal_for_all_values_is_the_same_and_what_never_is_differs() -> None:
    assert same((T - 1) * V, T * V - V) is True
    assert same(T * V, (T - 1) * V) is False
    assert same(T, V) is None
    assert same(T, 1) is None
    assert same(Size.symbol("n", 2), 1) is False
    assert same(2 * T, 2 * T + 1) is False


def test_assumptions_prove_more() -> None:
    assert same(T, 1, assume_at_least([T])) is False
    assert at_least(T, 3, assume_at_least([T - 1])) is True
    # A product above 1 implies nothing about one factor; it is kept as a fact.
    assert same(B * T, 1) is None
    assert same(B * T, 1, assume_at_least([B * T])) is False
    assert at_least(T, 2, assume_at_least([B * T])) is None
    # A bound of a quotient or a minimum implies bounds of its operands.
    assert at_least(C, 8, assume_at_least([floor_divide(C, 4)])) is True
    assert at_least(k, 2, assume_at_least([minimum(k, T)])) is True


def test_bounds_of_functions_are_used() -> None:
    assert at_least(T - minimum(k, T), 0) is True
    assert at_least(maximum(k, T) - k, 0) is True
    assert at_least(C - floor_divide(C, 2), 0) is True
    assert same(T, modulo(k, 4) - 5) is False
    assert same(C, floor_divide(C + 1, 2), assume_at_least([floor_divide(C + 1, 2)])) is False


def test_exact_division() -> None:
    assert divide(B * (T - 1) * V, V * (T - 1)) == B
    assert divide(B * B - 1, B - 1) == B + 1
    assert divide(B * T, V) is None
    assert divide(3 * T, 2) is None
    assert divide(T, 0) is None
    assert divide(0, T) == 0


def test_functions_fold_where_they_can() -> None:
    assert floor_divide(4 * C, 4) == C
    assert floor_divide(4 * C + 3, 4) == C
    assert floor_divide(C, 1) == C
    assert floor_divide(B * C, B * H) == floor_divide(C, H)
    assert floor_divide(floor_divide(C, 2), 3) == floor_divide(C, 6)
    assert ceil_divide(4 * H, H) == 4
    assert modulo(4 * C, 4) == 0
    assert modulo(4 * C + 1, 4) == 1
    assert minimum(T - 1, T) == T - 1
    assert maximum(T - 1, T) == T
    assert minimum(k, T) == minimum(T, k)
    with pytest.raises(ZeroDivisionError):
        floor_divide(T, 0)


def test_an_exact_quotient_meets_its_divisor_again() -> None:
    width = quotient(C, H)
    assert H * width == C
    assert B * H * width * T == B * C * T
    assert 8 * quotient(C, 8) == C
    assert str(H * floor_divide(C, H)) == "H*(C // H)"


def test_substitution_reaches_into_functions() -> None:
    (c,), (h,) = C.symbols, H.symbols
    assert substitute(floor_divide(C, H) * V, {c: 12, h: 5}) == 2 * V
    assert substitute(minimum(C, H), {c: 12}) == minimum(Size.of(12), H)
    assert substitute(T + 1, {}) == T + 1


def random_size(rng: random.Random, symbols: list[Size], depth: int = 2) -> Size:
    if not depth or rng.random() < 0.2:
        return rng.choice([*symbols, Size.of(rng.randint(0, 4))])
    one, two = random_size(rng, symbols, depth - 1), random_size(rng, symbols, depth - 1)
    kind = rng.choice(("+", "-", "*", "*", "//", "%", "min", "max"))
    if kind in ("//", "%"):
        divisor = rng.choice([*symbols, Size.of(rng.randint(1, 4))])
        return floor_divide(one, divisor) if kind == "//" else modulo(one, divisor)
    functions = {
        "+": one + two,
        "-": one - two,
        "*": one * two,
        "min": minimum(one, two),
        "max": maximum(one, two),
    }
    return functions[kind]


@settings(max_examples=300, deadline=None, database=None)
@given(st.integers(0, 2**32 - 1))
def test_proofs_hold_for_all_values(seed: int) -> None:
    rng = random.Random(seed)
    symbols = [Size.symbol(name, least) for name, least in (("a", 1), ("b", 1), ("c", 2), ("n", 0))]
    positive = symbols[:3]
    one, two, assumed = (random_size(rng, positive) for _ in range(3))
    bounds = assume_at_least([assumed])
    answers = same(one, two), at_least(one, two)
    bounded = same(one, two, bounds), at_least(one, two, bounds)
    total, times, less = one + two, one * two, one - two
    for _ in range(12):
        values: dict[Symbol, int | Size] = {}
        for size in symbols:
            (symbol,) = size.symbols
            values[symbol] = max(symbol.least, rng.choice((1, 1, 2, 2, 3, 5, 8)))
        a, b, c = (substitute(size, values).value for size in (one, two, assumed))
        assert a is not None
        assert b is not None
        assert c is not None
        assert substitute(total, values) == a + b
        assert substitute(times, values) == a * b
        assert substitute(less, values) == a - b
        assert answers[0] in (None, a == b), f"{one} and {two} at {values}"
        assert answers[1] in (None, a >= b), f"{one} and {two} at {values}"
        if c > 1:
            assert bounded[0] in (None, a == b), f"{one} and {two} at {values} assuming {assumed} > 1"
            assert bounded[1] in (None, a >= b), f"{one} and {two} at {values} assuming {assumed} > 1"
