"""Proofs about sizes: equality, inequality and lower bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import floordiv, mod

from shapefix.tensors.polynomials import Monomial, Size, common_monomial, divide_monomials, multiply_monomials
from shapefix.tensors.symbols import Atom, OpaqueStride, Symbol

Terms = dict[Monomial, int]

_LARGEST = 512
"""Maximum number of terms over shifted symbols in one comparison; nothing is proved of more."""
_DEPTH = 3
"""Maximum number of atoms replaced by their bounds in one comparison."""
_STEPS = 500
"""Maximum number of such replacements tried for one bound, else they grow with the cube of the atoms."""


class _Search:
    """Bounds of the symbols, and the number of replacements left to try."""

    __slots__ = ("bounds", "left")

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.left = _STEPS


class Bounds:
    """Lower bounds in addition to those of the symbols themselves.

    least maps symbols to lower bounds. facts pairs sizes with lower bounds; it holds the sizes that are not
    of the form `factor*symbol + constant` and so do not reduce to a bound of one symbol.
    """

    __slots__ = ("_shifts", "facts", "least")

    def __init__(
        self, least: Mapping[Symbol, int] | None = None, facts: tuple[tuple[Size, int], ...] = ()
    ) -> None:
        self.least = dict(least or {})
        self.facts = facts
        self._shifts: dict[Monomial, tuple[tuple[Monomial, int], ...]] = {}

    def of(self, symbol: Symbol) -> int:
        """Lower bound of a symbol."""
        return max(symbol.least, self.least.get(symbol, symbol.least))

    def shifted(self, monomial: Monomial) -> tuple[tuple[Monomial, int], ...]:
        """Expand a monomial over shifted symbols, each replaced by `bound + nonnegative symbol`."""
        if not self.least:
            return _shifted(monomial)
        known = self._shifts.get(monomial)
        if known is None:
            known = self._shifts[monomial] = _expand(monomial, self.of)
        return known

    def __bool__(self) -> bool:
        return bool(self.least or self.facts)


NO_BOUNDS = Bounds()


def assume_at_least(sizes: Sequence[Size], least: int = 2, bounds: Bounds = NO_BOUNDS) -> Bounds:
    """Extend the bounds: each size is at least `least`."""
    if all(size.value is not None or lower_bound(size, bounds) >= least for size in sizes):
        return bounds
    symbols = dict(bounds.least)
    facts = list(bounds.facts)
    pending = [(size, least) for size in sizes]
    while pending:
        size, number = pending.pop()
        if size.value is not None or lower_bound(size, Bounds(symbols)) >= number:
            continue
        constant = size.terms.get((), 0)
        rest = [(m, c) for m, c in size.terms.items() if m]
        if len(rest) == 1 and rest[0][1] > 0 and len(rest[0][0]) == 1:
            ((symbol,), factor) = rest[0]
            bound = -((constant - number) // factor)
            symbols[symbol] = max(bound, symbols.get(symbol, bound))
            if isinstance(symbol, Atom):
                pending.extend(_consequences(symbol, bound))
        else:
            facts.append((size, number))
    return Bounds(symbols, tuple(facts))


def _consequences(atom: Atom, least: int) -> list[tuple[Size, int]]:
    """Bounds of an atom's operands implied by the atom's lower bound, as (size, bound) pairs."""
    if atom.op == "min":
        return [(atom.left, least), (atom.right, least)]
    if atom.op in ("//", "/"):
        return [(atom.left - atom.right * least, 0)]
    if atom.op == "%":
        return [(atom.left, least), (atom.right, least + 1)]
    return []


def same(one: int | Size, two: int | Size, bounds: Bounds = NO_BOUNDS) -> bool | None:
    """Compare two sizes: True if equal for all values of their symbols, False if for none, else None."""
    if one is two:
        return True
    one, two = Size.of(one), Size.of(two)
    if one.value is not None and two.value is not None:
        return one.value == two.value
    if one.terms == two.terms:
        return True
    terms = (one - two).terms
    if not terms:
        return True
    if len(terms) == 1 and () in terms:
        return False
    common = common_monomial(terms)
    if common:
        if any(bounds.of(symbol) < 1 for symbol in common):
            common = tuple(symbol for symbol in common if bounds.of(symbol) >= 1)
        terms = {divide_monomials(m, common) or (): c for m, c in terms.items()}
    least, most = _examples(terms, bounds, 1)
    if least >= 1 and _least(terms, bounds, 1) >= 1:
        return False
    if most <= -1 and _least(_negative(terms), bounds, 1) >= 1:
        return False
    if _strides_differ(terms, bounds):
        return False
    return None


def at_least(size: int | Size, number: int | Size, bounds: Bounds = NO_BOUNDS) -> bool | None:
    """Compare a size with a lower bound: True if never below it, False if always below it, else None."""
    difference = Size.of(size) - number
    if difference.value is not None:
        return difference.value >= 0
    least, most = _examples(difference.terms, bounds, 0)
    if least >= 0 and _least(difference.terms, bounds, 0) >= 0:
        return True
    if most <= -1 and _least(_negative(difference.terms), bounds, 1) >= 1:
        return False
    return None


def lower_bound(size: Size, bounds: Bounds = NO_BOUNDS) -> int:
    """Largest provable lower bound of the size; far below zero if none can be proved."""
    if size.value is not None:
        return size.value
    return _least(size.terms, bounds, 1)


_UNKNOWN = -(1 << 80)
_SPREADS = ((0, 1), (7919, 101), (104729, 89))
"""For each example: a symbol is `serial * factor % modulus` above its lower bound, in the first one at it."""


def _examples(terms: Terms, bounds: Bounds, goal: int) -> tuple[int, int]:
    """Smallest and largest value of the terms in examples: numbers in the place of their symbols.

    What is false in an example cannot be proved: that they are always at least goal, or always at most -1.
    Without an example, both may be true.
    """
    smallest, largest = -_UNKNOWN, _UNKNOWN
    for factor, modulus in _SPREADS:
        known: dict[Symbol, int] = {}
        value = _example(terms, bounds, factor, modulus, known)
        for fact, least in bounds.facts:
            held = _example(fact.terms, bounds, factor, modulus, known)
            if held is None or held < least:
                value = None
        if value is not None:
            smallest, largest = min(smallest, value), max(largest, value)
            if smallest < goal and largest > -1:
                break
    return smallest, largest


def _example(terms: Terms, bounds: Bounds, factor: int, modulus: int, known: dict[Symbol, int]) -> int | None:
    """Value of the terms for one example; None if the symbols do not have such values."""
    total = 0
    for monomial, coefficient in terms.items():
        for symbol in monomial:
            value = known.get(symbol)
            if value is None:
                value = _example_of(symbol, bounds, factor, modulus, known)
                if value is None:
                    return None
                known[symbol] = value
            coefficient *= value
        total += coefficient
    return total


def _example_of(
    symbol: Symbol, bounds: Bounds, factor: int, modulus: int, known: dict[Symbol, int]
) -> int | None:
    bound = bounds.of(symbol) if bounds.least else symbol.least
    if not isinstance(symbol, Atom):
        return (bound if bound > -modulus else 0) + symbol.serial * factor % modulus
    left = _example(symbol.left.terms, bounds, factor, modulus, known)
    right = _example(symbol.right.terms, bounds, factor, modulus, known)
    if left is None or right is None:
        return None
    compute = _OPERATIONS.get(symbol.op)
    if compute is None or (right < 1 and symbol.op in ("//", "%")):
        return None
    value = compute(left, right)
    return value if value >= bound else None


_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "//": floordiv,
    "%": mod,
    "min": min,
    "max": max,
}
"""The functions of atoms; an exact quotient need not be one for an example."""


def _least(terms: Terms, bounds: Bounds, goal: int) -> int:
    """Lower bound of the terms; the search for a better one stops at goal."""
    if bounds:
        return _low(terms, _Search(bounds), goal, _DEPTH)
    return _least_known(frozenset(terms.items()), goal)


@lru_cache(maxsize=2048)
def _least_known(terms: frozenset[tuple[Monomial, int]], goal: int) -> int:
    return _low(dict(terms), _Search(NO_BOUNDS), goal, _DEPTH)


def _low(terms: Terms, search: _Search, goal: int, depth: int) -> int:
    if sum([1 << len(monomial) for monomial in terms]) > _LARGEST:
        return _UNKNOWN
    bounds = search.bounds
    best = _shifted_low(terms, bounds)
    if best >= goal:
        return best
    for fact, least in bounds.facts:
        rewritten = _with_fact(terms, fact, least)
        if rewritten is not None:
            best = max(best, _shifted_low(rewritten, bounds))
            if best >= goal:
                return best
    if depth:
        for relaxed, factor in _relaxed(terms, bounds):
            search.left -= 1
            if search.left < 0:
                return best
            low = _low(relaxed, search, goal * factor, depth - 1)
            if low > _UNKNOWN:
                best = max(best, -(-low // factor))
                if best >= goal:
                    return best
    return best


def _shifted_low(terms: Terms, bounds: Bounds) -> int:
    """Constant of the terms over shifted symbols; _UNKNOWN if another coefficient is negative there."""
    total: Terms = {}
    shifted = bounds.shifted if bounds.least else _shifted
    for monomial, coefficient in terms.items():
        for part, number in shifted(monomial):
            total[part] = total.get(part, 0) + coefficient * number
    constant = total.pop((), 0)
    return _UNKNOWN if total and min(total.values()) < 0 else constant


def _expand(monomial: Monomial, least: object) -> tuple[tuple[Monomial, int], ...]:
    total: Terms = {(): 1}
    for symbol in monomial:
        bound: int = least(symbol)  # type: ignore[operator]
        longer: Terms = {}
        for part, coefficient in total.items():
            grown = multiply_monomials(part, (symbol,))
            longer[grown] = longer.get(grown, 0) + coefficient
            if bound:
                longer[part] = longer.get(part, 0) + coefficient * bound
        total = longer
    return tuple(total.items())


@lru_cache(maxsize=4096)
def _shifted(monomial: Monomial) -> tuple[tuple[Monomial, int], ...]:
    return _expand(monomial, lambda symbol: symbol.least)


def _negative(terms: Terms) -> Terms:
    return {monomial: -coefficient for monomial, coefficient in terms.items()}


def _with_fact(terms: Terms, fact: Size, least: int) -> Terms | None:
    """Rewrite the terms with a fresh symbol for the leading product of a fact; None if it does not occur."""
    lead, factor = max(fact.terms.items(), key=lambda term: len(term[0]))
    if factor != 1:
        return None
    whole = Size({(Symbol("fact", least),): 1})
    rest = whole - Size({m: c for m, c in fact.terms.items() if m != lead})
    total = Size({})
    found = False
    for monomial, coefficient in terms.items():
        part = divide_monomials(monomial, lead)
        if part is None:
            total = total + Size({monomial: coefficient})
        else:
            found = True
            total = total + rest * Size({part: coefficient})
    return total.terms if found else None


def _relaxed(terms: Terms, bounds: Bounds) -> Iterable[tuple[Terms, int]]:
    """Relax the terms by replacing one atom with its bound.

    Yields pairs (relaxed, factor) with `relaxed <= factor * terms`.
    """
    atoms = {symbol for monomial in terms for symbol in monomial if isinstance(symbol, Atom)}
    for atom in sorted(atoms, key=lambda atom: atom.serial):
        divisor = atom.right if atom.op in ("//", "/") else Size.of(1)
        yield from _replaced(terms, atom, _upper(atom), _lower(atom), divisor, bounds)
        dividend = atom.left.only_symbol
        if atom.op == "//" and dividend is not None:
            # h // n also bounds h: n*(h // n) <= h <= n*(h // n) + n - 1.
            whole = atom.right * Size.from_symbol(atom)
            yield from _replaced(terms, dividend, [whole + atom.right - 1], [whole], Size.of(1), bounds)


def _replaced(
    terms: Terms, symbol: Symbol, upper: list[Size], lower: list[Size], multiple: Size, bounds: Bounds
) -> Iterable[tuple[Terms, int]]:
    """Replace a symbol by one of its bounds, given `lower <= multiple * symbol <= upper`.

    Yields pairs as _relaxed does.
    """
    slope: Terms = {}
    rest: Terms = {}
    for monomial, coefficient in terms.items():
        if symbol in monomial:
            at = monomial.index(symbol)
            slope[monomial[:at] + monomial[at + 1 :]] = coefficient
        else:
            rest[monomial] = coefficient
    if not slope or any(symbol in monomial for monomial in slope):
        return
    if _shifted_low(_negative(slope), bounds) >= 0:
        bounding = upper
    elif _shifted_low(slope, bounds) >= 0:
        bounding = lower
    else:
        return
    number = multiple.value
    if number is None or number < 1:
        return
    factor = Size(slope)
    for bound in bounding:
        yield (factor * bound + Size(rest) * number).terms, number


def _upper(atom: Atom) -> list[Size]:
    """Upper bounds of an atom, or of a quotient times its divisor."""
    if atom.op == "min":
        return [atom.left, atom.right]
    if atom.op in ("//", "/"):
        return [atom.left]
    if atom.op == "%":
        return [atom.right - 1]
    return []


def _lower(atom: Atom) -> list[Size]:
    """Lower bounds of an atom, or of a quotient times its divisor."""
    if atom.op == "max":
        return [atom.left, atom.right]
    if atom.op == "//":
        return [atom.left - atom.right + 1]
    if atom.op == "/":
        return [atom.left]
    return []


def _strides_differ(terms: Terms, bounds: Bounds) -> bool:
    """Check that terms, p*a - q*b for two unknown strides a and b of one tensor, cannot be zero.

    The dimensions of that tensor do not overlap, so either a > (n - 1)*b, where n is the size of b's
    dimension, or b > (m - 1)*a, where m is the size of a's. If p*(n - 1) >= q and q*(m - 1) >= p, both
    exclude p*a == q*b.
    """
    slopes: dict[OpaqueStride, Terms] = {}
    for monomial, coefficient in terms.items():
        strides = [symbol for symbol in monomial if isinstance(symbol, OpaqueStride)]
        if len(strides) != 1:
            return False
        rest = divide_monomials(monomial, (strides[0],)) or ()
        slopes.setdefault(strides[0], {})[rest] = coefficient
    if len(slopes) != 2:
        return False
    (a, p_terms), (b, q_terms) = slopes.items()
    if (
        a.base is not b.base
        or at_least(a.size, 2, bounds) is not True
        or at_least(b.size, 2, bounds) is not True
    ):
        return False
    p, q = Size(p_terms), -Size(q_terms)
    if at_least(p, 1, bounds) is not True:
        p, q = -p, -q
    if at_least(p, 1, bounds) is not True or at_least(q, 1, bounds) is not True:
        return False
    outside = at_least(p * (b.size - 1) - q, 0, bounds)
    return outside is True and at_least(q * (a.size - 1) - p, 0, bounds) is True
