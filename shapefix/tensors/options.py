"""Sizes dependent on command-line options, compared with the defaults of the options."""

from __future__ import annotations

from shapefix.tensors.bounds import at_least, same
from shapefix.tensors.errors import IndexOutOfRange, ShapeError, SizeMismatch
from shapefix.tensors.polynomials import Size, every_symbol
from shapefix.tensors.quotients import substitute
from shapefix.tensors.symbols import CommandLineOption


def options_in(*sizes: int | Size) -> tuple[CommandLineOption, ...]:
    """Command-line options in the sizes, without duplicates."""
    found = (symbol for size in sizes if isinstance(size, Size) for symbol in every_symbol(size))
    return tuple(dict.fromkeys(symbol for symbol in found if isinstance(symbol, CommandLineOption)))


def provably_differ(one: int | Size, two: int | Size) -> bool:
    """Check that two sizes differ for all values of their symbols, or for the defaults of options."""
    verdict = same(one, two)
    if verdict is False and not (_can_be(one) and _can_be(two)):
        # A computed size that can only be 0 or less comes from a number that was never an integer.
        return False
    if verdict is None and options_in(one, two):
        verdict = same(by_default(one), by_default(two))
    return verdict is False


def _can_be(size: int | Size) -> bool:
    """Check that a size is a constant, or may be 1 or more."""
    size = Size.of(size)
    return size.value is not None or at_least(size, 1) is not False


def needed_defaults(one: int | Size, two: int | Size) -> tuple[CommandLineOption, ...]:
    """Options with defaults needed to prove two sizes different; empty if the sizes differ anyway."""
    return () if same(one, two) is False else options_in(one, two)


def by_default(size: int | Size) -> Size:
    """Return a size with the defaults of the command-line options in it."""
    try:
        return substitute(Size.of(size), {option: option.default for option in options_in(size)})
    except ZeroDivisionError:
        return Size.of(size)


def options_of(error: ShapeError) -> tuple[CommandLineOption, ...]:
    """Options with defaults needed for torch to raise an error; empty if it does, anyway."""
    if isinstance(error, SizeMismatch):
        return needed_defaults(error.have, error.want)
    return _needed_for_index(error.index, error.size) if isinstance(error, IndexOutOfRange) else ()


def _needed_for_index(index: int | Size, size: int | Size) -> tuple[CommandLineOption, ...]:
    """Options with defaults needed to prove an index out of range; empty if it is, anyway."""
    is_outside = at_least(index, 0) is False or at_least(Size.of(index) - size, 0) is True
    return () if is_outside else options_in(index, size)
