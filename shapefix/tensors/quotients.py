"""Division, modulo, minimum and maximum of sizes: simplified if provable, else an atom for the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from weakref import WeakValueDictionary

from shapefix.tensors.bounds import NO_BOUNDS, Bounds, at_least, lower_bound
from shapefix.tensors.polynomials import ZERO, Size, common_monomial, content, divide
from shapefix.tensors.symbols import UNBOUNDED, Atom, Symbol

MOST_ATOMS = 300
"""The largest number of atoms in the text of one; beyond, it is a symbol of its own."""
_atoms: WeakValueDictionary[tuple[str, Size, Size], Atom] = WeakValueDictionary()


def _atom(op: str, left: Size, right: Size, least: int) -> Size:
    key = (op, left, right)
    atom = _atoms.get(key)
    if atom is None:
        atom = Atom(op, left, right, max(least, UNBOUNDED))
        if atom.weight > MOST_ATOMS:
            return Size.symbol("…", atom.least)
        _atoms[key] = atom
    return Size.from_symbol(atom)


def _cancelled(dividend: Size, divisor: Size) -> tuple[Size, Size]:
    """Cancel the positive factors shared by dividend and divisor."""
    shared = common_monomial([*dividend.terms, *divisor.terms])
    shared = tuple(symbol for symbol in shared if symbol.least >= 1)
    number = math.gcd(content(dividend), content(divisor))
    if not shared and number == 1:
        return dividend, divisor
    factor = Size({shared: number})
    return divide(dividend, factor) or dividend, divide(divisor, factor) or divisor


def quotient(dividend: int | Size, divisor: int | Size) -> Size:
    """Quotient of a division, assumed to leave no remainder and to be at least 1."""
    dividend, divisor = Size.of(dividend), Size.of(divisor)
    exact = divide(dividend, divisor)
    if exact is not None:
        return exact
    dividend, divisor = _cancelled(dividend, divisor)
    return _atom("/", dividend, divisor, max(1, _least_quotient(dividend, divisor)))


def _least_quotient(dividend: Size, divisor: Size) -> int:
    low = lower_bound(dividend)
    if divisor.value is not None and divisor.value > 0:
        return low // divisor.value
    if at_least(divisor, 1):
        return int(low >= 0 and at_least(dividend - divisor, 0) is True) if low >= 0 else low
    return UNBOUNDED


def shifted_dividend(atom: Atom) -> tuple[Symbol, int, int] | None:
    """Symbol n, the 3 and the 5 of `(n + 3) % 5` or `(n + 3) // 5`; None for other atoms."""
    divisor, shift = atom.right.value, atom.left.terms.get((), 0)
    symbol = (atom.left - shift).only_symbol
    if atom.op not in ("%", "//") or divisor is None or divisor < 1 or symbol is None:
        return None
    return symbol, shift, divisor


def floor_divide(dividend: int | Size, divisor: int | Size) -> Size:
    """Floor division. Raises ZeroDivisionError if the divisor is the constant 0."""
    dividend, divisor = Size.of(dividend), Size.of(divisor)
    number = divisor.value
    if number == 0:
        raise ZeroDivisionError("division of a size by zero")
    if dividend.value is not None and number is not None:
        return Size.of(dividend.value // number)
    exact = divide(dividend, divisor)
    if exact is not None and (number is not None or at_least(divisor, 1) is True):
        return exact
    if number is not None and number > 0:
        whole = Size({m: c // number for m, c in dividend.terms.items() if c // number})
        rest = Size({m: c % number for m, c in dividend.terms.items() if c % number})
        return whole + _floor_atom(rest, divisor)
    if dividend.value == 0 and at_least(divisor, 1):
        return ZERO
    return _floor_atom(*_cancelled(dividend, divisor))


def _floor_atom(dividend: Size, divisor: Size) -> Size:
    if at_least(dividend, 0) and at_least(divisor - dividend, 1):
        return ZERO
    number = divisor.value
    inner = dividend.only_symbol
    if number is not None and number > 0 and isinstance(inner, Atom) and inner.op == "//":
        divided = inner.right.value
        if divided is not None and divided > 0:
            return floor_divide(inner.left, divided * number)
    return _atom("//", dividend, divisor, _least_quotient(dividend, divisor))


def modulo(dividend: int | Size, divisor: int | Size) -> Size:
    """Remainder with the sign of the divisor, as in Python.

    Raises ZeroDivisionError if the divisor is the constant 0.
    """
    dividend, divisor = Size.of(dividend), Size.of(divisor)
    number = divisor.value
    if number == 0:
        raise ZeroDivisionError("division of a size by zero")
    if dividend.value is not None and number is not None:
        return Size.of(dividend.value % number)
    if divide(dividend, divisor) is not None:
        return ZERO
    if number is not None and number > 0:
        dividend = Size({m: c % number for m, c in dividend.terms.items() if c % number})
    if dividend.value is not None and number is not None:
        return Size.of(dividend.value % number)
    if at_least(dividend, 0) and at_least(divisor - dividend, 1):
        return dividend
    return _atom("%", dividend, divisor, 0 if at_least(divisor, 1) else UNBOUNDED)


def minimum(one: int | Size, two: int | Size, bounds: Bounds = NO_BOUNDS) -> Size:
    """Smaller of two sizes."""
    one, two = Size.of(one), Size.of(two)
    if one is two or at_least(two, one, bounds):
        return one
    if at_least(one, two, bounds):
        return two
    one, two = _ordered(one, two)
    return _atom("min", one, two, min(lower_bound(one), lower_bound(two)))


def maximum(one: int | Size, two: int | Size) -> Size:
    """Larger of two sizes."""
    one, two = Size.of(one), Size.of(two)
    if at_least(two, one):
        return two
    if at_least(one, two):
        return one
    one, two = _ordered(one, two)
    return _atom("max", one, two, max(lower_bound(one), lower_bound(two)))


def ceil_divide(dividend: int | Size, divisor: int | Size) -> Size:
    """Quotient rounded up, for a positive divisor. Raises ZeroDivisionError if it is the constant 0."""
    dividend, divisor = Size.of(dividend), Size.of(divisor)
    exact = divide(dividend, divisor)
    return floor_divide(dividend + divisor - 1, divisor) if exact is None else exact


def _ordered(one: Size, two: Size) -> tuple[Size, Size]:
    """Sort two sizes, so that the order of arguments does not matter."""
    return (one, two) if _rank(one) <= _rank(two) else (two, one)


def _rank(size: Size) -> tuple[object, ...]:
    return tuple(sorted(([symbol.serial for symbol in m], c) for m, c in size.terms.items()))


def substitute(size: Size, values: Mapping[Symbol, int | Size]) -> Size:
    """Replace symbols of a size, including those in operands of atoms.

    Raises ZeroDivisionError if a divisor becomes 0.
    """
    if size.value is not None:
        return size
    known: dict[Symbol, Size] = {}
    total = ZERO
    for monomial, coefficient in size.terms.items():
        term = Size.of(coefficient)
        for symbol in monomial:
            if symbol not in known:
                known[symbol] = _substituted(symbol, values)
            term = term * known[symbol]
        total = total + term
    return total


def _substituted(symbol: Symbol, values: Mapping[Symbol, int | Size]) -> Size:
    if symbol in values:
        return Size.of(values[symbol])
    if not isinstance(symbol, Atom):
        return Size.from_symbol(symbol)
    left, right = substitute(symbol.left, values), substitute(symbol.right, values)
    if left is symbol.left and right is symbol.right:
        return Size.from_symbol(symbol)
    return _FUNCTIONS[symbol.op](left, right)


_FUNCTIONS: dict[str, Callable[[Size, Size], Size]] = {
    "//": floor_divide,
    "%": modulo,
    "min": minimum,
    "max": maximum,
    "/": quotient,
}
