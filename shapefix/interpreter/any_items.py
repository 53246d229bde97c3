"""Any item of known ones: numbers between two ends, one of several texts, rows of the same form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shapefix.interpreter.containers import Contents, DictValue, ListValue, TupleValue
from shapefix.interpreter.joins import DEEPEST, without_length
from shapefix.interpreter.texts import OneOfTexts
from shapefix.interpreter.values import TEXT, Constant, Integer, Unknown, Value
from shapefix.tensors.bounds import lower_bound
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import shifted_dividend
from shapefix.tensors.symbols import UNBOUNDED, Atom, ListedNumber

_MOST_CELLS = 4_000
"""Maximum number of items looked at in a list of lists."""
_DEEPEST = 2
"""Maximum depth of rows compared item by item."""
_MOST_TEXTS = 512
"""Maximum number of different texts kept one by one."""


def any_of(items: Sequence[Value], depth: int = 0) -> Value:
    """An arbitrary one of these items; in rows of the same form the numbers and texts of each column."""
    # A list may contain itself, many times over.
    found = _any_row_of(items, depth + 1) if depth <= _DEEPEST else None
    found = found or any_number(items) or any_text(items)
    if found is not None:
        return found
    element = without_length(Contents(tuple(items))).element
    return element if element is not None else Unknown()


def _any_row_of(items: Sequence[Value], depth: int) -> Value | None:
    """An arbitrary one of several rows of the same form; None for other items."""
    first = items[0]
    rows = [each.items for each in items if isinstance(each, TupleValue)]
    if isinstance(first, TupleValue) and len(rows) == len(items) and len({len(row) for row in rows}) == 1:
        return TupleValue(tuple(any_of(column, depth) for column in zip(*rows, strict=True)), first.names)
    lists = [each.items for each in items if isinstance(each, ListValue) and each.items]
    if isinstance(first, ListValue) and len(lists) == len(items) and len({len(row) for row in lists}) == 1:
        if len(lists) * len(lists[0]) <= _MOST_CELLS:
            return ListValue(tuple(any_of(column, depth) for column in zip(*lists, strict=True)))
    return _any_row(items, depth) if isinstance(first, DictValue) else None


def _any_row(items: Sequence[Value], depth: int) -> Value | None:
    """An arbitrary one of several plain dictionaries with the same keys; None for other items."""
    rows = [each for each in items if isinstance(each, DictValue) and each.closed and each.absent is None]
    first = rows[0] if rows else None
    if first is None or len(rows) < len(items) or len(rows) * len(first.fields) > _MOST_CELLS:
        return None
    if any(row.fields.keys() != first.fields.keys() or row.kind != first.kind for row in rows):
        return None
    fields = {key: any_of([row.fields[key] for row in rows], depth) for key in first.fields}
    return DictValue(fields, True, first.kind, None, first.written)


def any_number(items: Sequence[Value]) -> Value | None:
    """An arbitrary one of different ints; None for other items."""
    numbers = [each.value for each in items if isinstance(each, Constant) and type(each.value) is int]
    if len(numbers) < len(items) or len(set(numbers)) < 2:
        return None
    return Integer(Size.from_symbol(ListedNumber(numbers)))


def numbers_of(size: Size) -> frozenset[int] | None:
    """All values of an arbitrary number of a list, or of its remainder: `i` and `i % 5`; None for others."""
    symbol = size.only_symbol
    if isinstance(symbol, ListedNumber):
        return frozenset(symbol.numbers)
    parts = shifted_dividend(symbol) if isinstance(symbol, Atom) and symbol.op == "%" else None
    if parts is None:
        return None
    listed, shift, divisor = parts
    if not isinstance(listed, ListedNumber):
        return None
    return frozenset((number + shift) % divisor for number in listed.numbers)


def any_text(items: Sequence[Value]) -> Value | None:
    """An arbitrary one of different texts; None for other items."""
    texts = [each.value for each in items if isinstance(each, Constant) and isinstance(each.value, str)]
    different = tuple(dict.fromkeys(texts))
    return OneOfTexts(different) if len(texts) == len(items) and 1 < len(different) <= _MOST_TEXTS else None


def without_ends(value: Value, depth: int = 0) -> Value:
    """The same value without a known largest or smallest number: some may have been left out."""
    if isinstance(value, TupleValue) and depth < DEEPEST:
        return TupleValue(tuple(without_ends(item, depth + 1) for item in value.items), value.names)
    if isinstance(value, Integer) and _is_of_list(value.size):
        return Integer(Size.symbol("n", least=min(1, max(lower_bound(value.size), UNBOUNDED))))
    return TEXT if isinstance(value, OneOfTexts) else value


def _is_of_list(size: Size) -> bool:
    """Check whether a number is an arbitrary one of a list, or a remainder."""
    return any(isinstance(each, (Atom, ListedNumber)) for each in size.symbols)


def alternatives(value: Value | None) -> tuple[Constant, ...] | None:
    """Possible texts of a value, as constants; None if they are not known."""
    if isinstance(value, OneOfTexts):
        return tuple(map(Constant, value.values))
    return (value,) if isinstance(value, Constant) and isinstance(value.value, str) else None


def entries_of(owner: DictValue, keys: Sequence[Constant]) -> Iterator[Value | None]:
    """Entries of a dictionary at these keys; a None for a missing one."""
    for key in keys:
        yield owner.fields.get(key.value)
