"""Sizes: integer polynomials over symbols, in normal form."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter

from shapefix.tensors.symbols import Atom, Symbol

Monomial = tuple[Symbol, ...]
"""A product of symbols, sorted by serial; powers repeat the symbol."""

_serial = attrgetter("serial")


def multiply_monomials(left: Monomial, right: Monomial) -> Monomial:
    """Product of two monomials."""
    if not left:
        return right
    if not right:
        return left
    if left[-1].serial <= right[0].serial:
        return left + right
    if right[-1].serial <= left[0].serial:
        return right + left
    return tuple(sorted(left + right, key=_serial))


def divide_monomials(left: Monomial, right: Monomial) -> Monomial | None:
    """Quotient of two monomials; None if right does not divide left."""
    if not right:
        return left
    rest = list(left)
    for symbol in right:
        if symbol not in rest:
            return None
        rest.remove(symbol)
    return tuple(rest)


class Size:
    """Immutable polynomial for a number of elements along a dimension, or for a stride in elements.

    terms maps monomials to nonzero coefficients. value is the constant if the size has no symbols, else None.
    reducible is set if a symbol may be an exact quotient, which multiplication by its divisor cancels. Two
    sizes are `==` if their normal forms are equal; use `same` for proofs.
    """

    __slots__ = ("_hash", "_low", "reducible", "terms", "value")

    terms: dict[Monomial, int]
    value: int | None
    reducible: bool
    _hash: int
    _low: int | None

    def __init__(self, terms: dict[Monomial, int], reducible: bool = False) -> None:
        self.terms = terms
        self.reducible = reducible
        if not terms:
            self.value = 0
        elif len(terms) == 1:
            self.value = terms.get(())
        else:
            self.value = None

    @staticmethod
    def of(number: int | Size) -> Size:
        """Convert an int to a constant; return a Size unchanged."""
        if isinstance(number, Size):
            return number
        known = _SMALL.get(number)
        return known if known is not None else Size({(): int(number)})

    @staticmethod
    def symbol(name: str, least: int = 1) -> Size:
        """Create a new symbol, never below least, and return it as a size."""
        return Size({(Symbol(name, least),): 1})

    @staticmethod
    def from_symbol(symbol: Symbol) -> Size:
        """Size equal to the symbol."""
        return Size({(symbol,): 1}, isinstance(symbol, Atom) and symbol.op == "/")

    @property
    def symbols(self) -> frozenset[Symbol]:
        """Symbols of the normal form; an atom counts as one symbol, without its operands."""
        return frozenset(symbol for monomial in self.terms for symbol in monomial)

    @property
    def only_symbol(self) -> Symbol | None:
        """Only symbol of a size with a single symbol, else None."""
        if len(self.terms) == 1:
            ((monomial, coefficient),) = self.terms.items()
            if coefficient == 1 and len(monomial) == 1:
                return monomial[0]
        return None

    def text(self, names: Mapping[Symbol, str] | None = None) -> str:
        """Readable text in factored form, such as `(T - 1)*V`; names overrides the names of symbols."""
        from shapefix.tensors.text import text

        return text(self, names or {})

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Size({self.text()})"

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            value = self.value
            self._hash = hash(value) if value is not None else hash(frozenset(self.terms.items()))
            return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Size):
            return self.terms == other.terms
        if isinstance(other, int):
            return self.value == other
        return NotImplemented

    def __add__(self, other: int | Size) -> Size:
        other = other if isinstance(other, Size) else Size.of(other)
        if self.value is not None and other.value is not None:
            return Size.of(self.value + other.value)
        if not other.terms:
            return self
        if not self.terms:
            return other
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            total = terms.get(monomial, 0) + coefficient
            if total:
                terms[monomial] = total
            else:
                del terms[monomial]
        return Size(terms, self.reducible or other.reducible) if terms else ZERO

    __radd__ = __add__

    def __neg__(self) -> Size:
        return Size({monomial: -coefficient for monomial, coefficient in self.terms.items()}, self.reducible)

    def __sub__(self, other: int | Size) -> Size:
        other = other if isinstance(other, Size) else Size.of(other)
        if self.value is not None and other.value is not None:
            return Size.of(self.value - other.value)
        return self + -other

    def __rsub__(self, other: int | Size) -> Size:
        return Size.of(other) - self

    def __mul__(self, other: int | Size) -> Size:
        other = other if isinstance(other, Size) else Size.of(other)
        left, right = self.value, other.value
        if left is not None:
            if right is not None:
                return Size.of(left * right)
            if left == 1:
                return other
            if left == 0:
                return ZERO
        elif right == 1:
            return self
        elif right == 0:
            return ZERO
        terms: dict[Monomial, int] = {}
        for one, a in self.terms.items():
            for two, b in other.terms.items():
                product = multiply_monomials(one, two)
                total = terms.get(product, 0) + a * b
                if total:
                    terms[product] = total
                else:
                    del terms[product]
        if self.reducible or other.reducible:
            return _reduced(terms)
        return Size(terms)

    __rmul__ = __mul__


def _reduced(terms: dict[Monomial, int]) -> Size:
    """Size of the terms, with each product of an exact quotient and its divisor replaced by the dividend."""
    total = Size({})
    for monomial, coefficient in terms.items():
        total = total + _reduced_term(monomial, coefficient)
    return total


def _reduced_term(monomial: Monomial, coefficient: int) -> Size:
    for symbol in monomial:
        if isinstance(symbol, Atom) and symbol.op == "/" and len(symbol.right.terms) == 1:
            ((divisor, factor),) = symbol.right.terms.items()
            rest = divide_monomials(monomial, multiply_monomials((symbol,), divisor))
            if rest is not None and coefficient % factor == 0:
                return symbol.left * Size({rest: coefficient // factor}, True)
    return Size({monomial: coefficient}, any(isinstance(s, Atom) and s.op == "/" for s in monomial))


_SMALL: dict[int, Size] = {number: Size({(): number} if number else {}) for number in range(-64, 4097)}
ZERO = _SMALL[0]
ONE = _SMALL[1]


def product(sizes: Iterable[Size]) -> Size:
    """Product of sizes; 1 if there are none."""
    total = ONE
    for size in sizes:
        total = total * size
    return total


def suffix_products(sizes: tuple[Size, ...], start: Size = ONE) -> list[Size]:
    """Start times the product of `sizes[i:]`, for each i from 0 to len(sizes)."""
    products = [start]
    for size in reversed(sizes):
        products.append(products[-1] * size)
    products.reverse()
    return products


def common_monomial(terms: Iterable[Monomial]) -> Monomial:
    """Largest monomial dividing all terms."""
    common: list[Symbol] | None = None
    for monomial in terms:
        if common is None:
            common = list(monomial)
            continue
        if not common:
            break
        rest = list(monomial)
        kept = []
        for symbol in common:
            if symbol in rest:
                rest.remove(symbol)
                kept.append(symbol)
        common = kept
    return tuple(common or ())


def content(size: Size) -> int:
    """Greatest common divisor of the coefficients; 0 for the size 0."""
    return math.gcd(*size.terms.values())


def divide(dividend: int | Size, divisor: int | Size) -> Size | None:
    """Exact quotient of two sizes as a polynomial; None for a remainder or the divisor 0."""
    dividend, divisor = Size.of(dividend), Size.of(divisor)
    if divisor.value is not None:
        number = divisor.value
        if number == 1:
            return dividend
        if number == 0 or any(coefficient % number for coefficient in dividend.terms.values()):
            return None
        return Size({m: c // number for m, c in dividend.terms.items()}, dividend.reducible)
    if not dividend.terms:
        return ZERO
    (lead, factor) = _leading(divisor)
    quotient: dict[Monomial, int] = {}
    rest = dividend
    while rest.terms:
        monomial, coefficient = _leading(rest)
        part = divide_monomials(monomial, lead)
        if part is None or coefficient % factor:
            return None
        quotient[part] = coefficient // factor
        rest = rest - _plain_product(divisor, part, coefficient // factor)
    return Size(quotient, dividend.reducible)


def _plain_product(size: Size, monomial: Monomial, coefficient: int) -> Size:
    """Product of a size and a term, without reducing quotients: a reduction could stall the division."""
    return Size(
        {multiply_monomials(m, monomial): c * coefficient for m, c in size.terms.items()}, size.reducible
    )


def _leading(size: Size) -> tuple[Monomial, int]:
    return max(size.terms.items(), key=lambda term: (len(term[0]), [-symbol.serial for symbol in term[0]]))


def every_symbol(size: Size) -> Iterator[Symbol]:
    """Symbols of a size, including those of the operands of its atoms, with repetitions."""
    for symbol in size.symbols:
        yield symbol
        if isinstance(symbol, Atom):
            yield from every_symbol(symbol.left)
            yield from every_symbol(symbol.right)
