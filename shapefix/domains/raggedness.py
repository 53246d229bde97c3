"""Rows combined into one tensor: their lengths, and whether all are equal."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from shapefix.interpreter.containers import ListValue, RaggedDim, TupleValue, elements
from shapefix.interpreter.modules import Module, Place
from shapefix.interpreter.per_item_sizes import provably_ragged, rebound
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.bounds import same
from shapefix.tensors.polynomials import ONE, Size, every_symbol
from shapefix.tensors.symbols import PerItemSize

DEEPEST = 4

PADDED_IN_MAP = "padded to the longest of a map batch"
"""Text of an Origin for rows with one length per map batch, different between batches."""


@dataclass(frozen=True, eq=False, slots=True)
class Origin:
    """Origin of per-row sizes: the `source` of a PerItemSize.

    what completes "…: the rows keep their own lengths", as "tokenizer called without padding". cut is the
    length that longer rows are cut to, None if they are not: rows that are all longer are equal.
    """

    place: Place
    what: str
    cut: Size | None = None


class Column(Place):
    """Origin of a dataset's column, and all later changes of the dataset's columns, in order."""

    __slots__ = ("steps",)

    def __init__(self, module: Module, node: cst.CSTNode, steps: tuple[Place, ...] = ()) -> None:
        super().__init__(module, node)
        self.steps = steps


def has_rows(data: ListValue | TupleValue) -> bool:
    """Check whether the items of a list are lists or tensors themselves."""
    items = elements(data)
    first = items[0] if items else data.element if isinstance(data, ListValue) else None
    return isinstance(first, (ListValue, TensorValue))


def ragged(data: Value | None, depth: int = 0) -> tuple[Size, Size] | None:
    """Two differing sizes of rows or tensors in a list; None if all are or may be equal.

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
    """Known sizes of a row: the length of a list, all those of a tensor."""
    if isinstance(row, TensorValue):
        return row.layout.sizes if row.layout is not None else ()
    if isinstance(row, ListValue):
        return (row.length,) if row.length is not None else ()
    if isinstance(row, TupleValue):
        return (Size.of(len(row.items)),)
    return ()


def differs(row: Value | None) -> PerItemSize | None:
    """Symbol for a certain per-sample difference in the length of this row, or in a size of this tensor."""
    found = (provably_ragged(size) for size in row_sizes(row))
    return next((symbol for symbol in found if symbol is not None), None)


def may_differ(row: Value | None) -> bool:
    """Check whether the length of this row, or a size of this tensor, may differ from sample to sample."""
    return any(isinstance(symbol, PerItemSize) for size in row_sizes(row) for symbol in every_symbol(size))


def origins(size: Size) -> Iterator[Origin]:
    """Origins of the differences in a size."""
    for symbol in sorted(every_symbol(size), key=lambda symbol: symbol.serial):
        if isinstance(symbol, PerItemSize) and isinstance(symbol.source, Origin):
            yield symbol.source


def varying(size: Size, axes: Collection[object]) -> PerItemSize | None:
    """Symbol of a size varying along one of the axes; None if the size is the same for all items."""
    for symbol in every_symbol(size):
        if isinstance(symbol, PerItemSize) and symbol.axis in axes:
            return symbol
    return None


def over_samples(value: Value, axis: RaggedDim, since: int) -> Value:
    """The same value as one sample of many: sizes varying along any other axis vary along this one."""
    return rebound(value, axis, since, samples=True)


def longest(size: Size, axes: Collection[RaggedDim], source: object = None) -> Size:
    """Largest of a size over all items; a constant size is its own maximum."""
    return _over_all(size, axes, "longest", source)


def total(size: Size, axes: Collection[RaggedDim], source: object = None) -> Size:
    """Sum of a size over all items, of an unknown number: that of a constant size is a multiple of it."""
    if varying(size, axes) is None and size != ONE:
        return size * _over_all(ONE, axes, "total", source)
    return _over_all(size, axes, "total", source)


def _over_all(size: Size, axes: Collection[RaggedDim], what: str, source: object) -> Size:
    symbol = varying(size, axes)
    if symbol is None and what == "longest":
        return size
    axis = symbol.axis if symbol is not None else next(iter(axes), None)
    known = {}
    if isinstance(axis, RaggedDim):
        known = axis.longest if what == "longest" else axis.totals
    if size not in known:
        origin = source if symbol is None else symbol.source
        known[size] = Size.from_symbol(PerItemSize(what, None, origin))
    return known[size]
