"""Sizes that depend on the command line: what holds with the defaults of its options."""

from __future__ import annotations

from shapefix.tensors.bounds import at_least, same
from shapefix.tensors.polynomials import Size, every_symbol
from shapefix.tensors.quotients import substitute
from shapefix.tensors.symbols import CommandLineOption


def options_in(*sizes: int | Size) -> tuple[CommandLineOption, ...]:
    """The options that sizes depend on, each once."""
    found = (symbol for size in sizes if isinstance(size, Size) for symbol in every_symbol(size))
    return tuple(dict.fromkeys(symbol for symbol in found if isinstance(symbol, CommandLineOption)))


def provably_differ(one: int | Size, two: int | Size) -> bool:
    """Whether two sizes differ for all values of their symbols, or where options have their defaults."""
    verdict = same(one, two)
    if verdict is False and not (_can_be(one) and _can_be(two)):
        # A number that code computes and that could only be 0 or less was no whole number to begin with.
        return False
    if verdict is None and options_in(one, two):
        verdict = same(_by_default(one), _by_default(two))
    return verdict is False


def _can_be(size: int | Size) -> bool:
    """Whether a size, be it computed from unknown numbers, may be 1 or more."""
    size = Size.of(size)
    return size.value is not None or at_least(size, 1) is not False


def needed_defaults(one: int | Size, two: int | Size) -> tuple[CommandLineOption, ...]:
    """The options without whose defaults it is not certain that two sizes differ."""
    return () if same(one, two) is False else options_in(one, two)


def _by_default(size: int | Size) -> Size:
    try:
        return substitute(Size.of(size), {option: option.default for option in options_in(size)})
    except ZeroDivisionError:
        return Size.of(size)
