"""Numbers of rows of datasets: after a selection, and whether one map batch may hold them all."""

from __future__ import annotations

import math

from shapefix.domains.raggedness import PADDED_IN_MAP, origins, row_sizes
from shapefix.interpreter.containers import DictValue, ListValue, NumberRange, elements
from shapefix.interpreter.values import Integer, Unknown, Value, as_size, integer
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import minimum
from shapefix.tensors.symbols import Atom, RowCount, Symbol

MAP_BATCH = 1000
"""The number of rows that `map` passes to its function at once by default."""


def unknown_count(most: Value | None = None) -> Value:
    """Return the number of rows of data, known to the run only, at most another number."""
    bound = None if most is None or isinstance(most, Unknown) else as_size(most)
    return Integer(Size.from_symbol(RowCount("num_rows", bound)))


def may_exceed(count: Value | None, most: int) -> bool:
    """Check whether the data may have more rows than most.

    A number that the code states in a variable may be a smaller one; one that differs between paths counts as
    that of the data.
    """
    size = None if count is None or isinstance(count, Unknown) else as_size(count)
    largest = math.inf if size is None else _largest(size)
    return largest is not None and largest > most


def _largest(size: Size) -> float | None:
    """Return the largest number of rows, as far as the data decides; None if a stated number does."""
    total = 0.0
    for monomial, coefficient in size.terms.items():
        largest = [_largest_symbol(symbol) for symbol in monomial]
        known = [each for each in largest if each is not None]
        if len(known) < len(largest):
            return None
        total += max(0.0, coefficient * math.prod(known))
    return total


def _largest_symbol(symbol: Symbol) -> float | None:
    if isinstance(symbol, RowCount):
        return math.inf if symbol.most is None else _largest(symbol.most)
    if isinstance(symbol, Atom) and symbol.op == "min":
        left, right = _largest(symbol.left), _largest(symbol.right)
        return None if left is None or right is None else min(left, right)
    return None


def selected(indices: Value | None) -> Value:
    """Number of rows with these indices."""
    items = elements(indices)
    if items is not None:
        return integer(Size.of(len(items)))
    if isinstance(indices, NumberRange):
        return integer(indices.count)
    length = indices.length if isinstance(indices, ListValue) else None
    return integer(length) if length is not None else Integer(Size.symbol("rows", least=0))


def taken(count: Value | None, total: Value) -> Value:
    """Number of rows of `take(count)`."""
    asked, known = as_size(count), as_size(total)
    return unknown_count(total) if asked is None or known is None else integer(minimum(asked, known))


def without_map_padding(row: DictValue) -> DictValue:
    """Row of a dataset with all rows possibly of one map batch, padded to one length."""
    fields = {name: Unknown(str(name)) if _is_padded(cell) else cell for name, cell in row.fields.items()}
    return DictValue(fields, row.closed, row.kind, row.absent, row.written)


def _is_padded(cell: Value) -> bool:
    return any(origin.what == PADDED_IN_MAP for size in row_sizes(cell) for origin in origins(size))
