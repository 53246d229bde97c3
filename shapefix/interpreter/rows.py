"""Rows that are put together into one tensor: their lengths, and whether these are all the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shapefix.interpreter.axes import provably_ragged
from shapefix.interpreter.containers import ListValue, TupleValue, elements
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value
from shapefix.tensors.bounds import same
from shapefix.tensors.polynomials import Size, every_symbol
from shapefix.tensors.symbols import PerItemSize, RangeItem

DEEPEST = 4

PADDED_IN_MAP = "padded to the longest of a map batch"
"""What an Origin says of rows that have one length in each map batch, and another one in the next."""


@dataclass(frozen=True, eq=False, slots=True)
class Origin:
    """Where sizes come from that differ from row to row, and how: the `source` of a Varying symbol.

    what completes "…: the rows keep their own lengths", as "tokenizer called without padding".
    """

    place: Place
    what: str


@dataclass(frozen=True, eq=False, slots=True)
class Cut:
    """Where a list is cut into chunks, the last of which may be shorter: the `source` of a Varying symbol.

    chunk is the loop's counter: any one number of `range(start, stop, step)`.
    """

    place: Place
    chunk: RangeItem


@dataclass(frozen=True, eq=False, slots=True)
class Column(Place):
    """Where a column of a dataset comes from, and what has changed the dataset's columns since, in order."""

    steps: tuple[Place, ...] = ()


def has_rows(data: ListValue | TupleValue) -> bool:
    """Whether the items of a list are lists or tensors themselves."""
    items = elements(data)
    first = items[0] if items else data.element if isinstance(data, ListValue) else None
    return isinstance(first, (ListValue, TensorValue))


def ragged(data: Value | None, depth: int = 0) -> tuple[Size, Size] | None:
    """Two sizes of rows, or of tensors, in a list that differ; None where all are the same, or may be.

    Where the rows are not known one by one, both are the size that differs from row to row.
    """
    if not isinstance(data, (ListValue, TupleValue)) or depth > DEEPEST:
        return None
    items = elements(data)
    if items is None:
        assert isinstance(data, ListValue)
        for size in row_sizes(data.element):
            if provably_ragged(size, data.axes) is not None:
                return size, size
        return ragged(data.element, depth + 1)
    first = row_sizes(items[0]) if items else ()
    for item in items[1:]:
        for one, other in zip(first, row_sizes(item), strict=False):
            if same(one, other) is False:
                return one, other
    for item in items[:8]:
        found = ragged(item, depth + 1)
        if found is not None:
            return found
    return None


def row_sizes(row: Value | None) -> tuple[Size, ...]:
    """The sizes of a row that are known: the length of a list, all those of a tensor."""
    if isinstance(row, TensorValue):
        return row.layout.sizes if row.layout is not None else ()
    if isinstance(row, ListValue):
        return (row.length,) if row.length is not None else ()
    if isinstance(row, TupleValue):
        return (Size.of(len(row.items)),)
    return ()


def differs(row: Value | None) -> PerItemSize | None:
    """What surely makes the length of this row, or a size of this tensor, differ from sample to sample."""
    found = (provably_ragged(size) for size in row_sizes(row))
    return next((symbol for symbol in found if symbol is not None), None)


def may_differ(row: Value | None) -> bool:
    """Whether the length of this row, or a size of this tensor, may differ from sample to sample."""
    return any(isinstance(symbol, PerItemSize) for size in row_sizes(row) for symbol in every_symbol(size))


def origins(size: Size) -> Iterator[Origin]:
    """Where the differences in a size come from."""
    for symbol in sorted(every_symbol(size), key=lambda symbol: symbol.serial):
        if isinstance(symbol, PerItemSize) and isinstance(symbol.source, Origin):
            yield symbol.source
