"""Readable text of sizes."""

from __future__ import annotations

from collections.abc import Mapping

from shapefix.tensors.polynomials import ONE, Monomial, Size, content, divide
from shapefix.tensors.symbols import Atom, Symbol


def text(size: Size, names: Mapping[Symbol, str]) -> str:
    """Text of a size, factored if possible: `(T - 1)*V`, `2*C + 1`, `(C // H)*V`.

    names overrides the names of symbols.
    """
    if size.value is not None:
        return str(size.value)
    number, factors = _factors(size)
    if number == 1 and len(factors) == 1:
        return _sum(factors[0], names)
    written = [_factor(factor, names) for factor in sorted(factors, key=_first)]
    if number == -1:
        return "-" + "*".join(written)
    return "*".join(written if number == 1 else [str(number), *written])


def _factors(size: Size) -> tuple[int, list[Size]]:
    """Factorization of a size into a number and sizes."""
    number = content(size)
    if all(coefficient < 0 for coefficient in size.terms.values()):
        number = -number
    rest = Size({monomial: coefficient // number for monomial, coefficient in size.terms.items()})
    factors: list[Size] = []
    for symbol in sorted(rest.symbols, key=lambda symbol: symbol.serial):
        while (split := _split(rest, symbol)) is not None:
            factors.append(split[0])
            rest = split[1]
    if rest != ONE:
        if rest.value == -1:
            number = -number
        else:
            factors.append(rest)
    return number, factors


def _split(size: Size, symbol: Symbol) -> tuple[Size, Size] | None:
    """Split a size into (symbol + offset) and another factor; None if there is no such offset."""
    slope: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in size.terms.items():
        if symbol in monomial:
            at = monomial.index(symbol)
            slope[monomial[:at] + monomial[at + 1 :]] = coefficient
        else:
            rest[monomial] = coefficient
    if not slope:
        return None
    other = Size(slope)
    if not rest:
        return Size({(symbol,): 1}), other
    if any(symbol in monomial for monomial in slope):
        return None
    offset = divide(Size(rest), other)
    return None if offset is None or other.value == -1 else (Size({(symbol,): 1}) + offset, other)


def _first(size: Size) -> tuple[int, int]:
    return min(symbol.serial for symbol in size.symbols), len(size.terms)


def _factor(size: Size, names: Mapping[Symbol, str]) -> str:
    symbol = size.only_symbol
    if symbol is None or (isinstance(symbol, Atom) and symbol not in names and symbol.op in ("//", "%", "/")):
        return f"({_sum(size, names)})"
    return _symbol(symbol, names)


def _sum(size: Size, names: Mapping[Symbol, str]) -> str:
    written = ""
    terms = sorted(size.terms.items(), key=_reading_order)
    # A text begins with a positive term if there is one: `3 - T`.
    if terms[0][1] < 0:
        terms.sort(key=lambda term: term[1] < 0)
    for monomial, coefficient in terms:
        sign = "-" if coefficient < 0 else "+"
        parts = [] if abs(coefficient) == 1 and monomial else [str(abs(coefficient))]
        if not parts and len(monomial) == 1 and len(size.terms) == 1:
            parts = [_symbol(monomial[0], names)]
        else:
            parts += [_factor(Size({(symbol,): 1}), names) for symbol in monomial]
        term = "*".join(parts)
        if written:
            written += f" {sign} {term}"
        else:
            written = f"-{term}" if sign == "-" else term
    return written


def _reading_order(term: tuple[Monomial, int]) -> tuple[int, bool, list[int]]:
    monomial, coefficient = term
    return -len(monomial), coefficient < 0, [symbol.serial for symbol in monomial]


def _symbol(symbol: Symbol, names: Mapping[Symbol, str]) -> str:
    if symbol in names or not isinstance(symbol, Atom):
        return names.get(symbol, symbol.name)
    if symbol.op in ("min", "max"):
        return f"{symbol.op}({text(symbol.left, names)}, {text(symbol.right, names)})"
    operator = "//" if symbol.op == "/" else symbol.op
    return f"{_operand(symbol.left, names)} {operator} {_operand(symbol.right, names)}"


def _operand(size: Size, names: Mapping[Symbol, str]) -> str:
    return str(size.value) if size.value is not None and size.value >= 0 else _factor(size, names)
