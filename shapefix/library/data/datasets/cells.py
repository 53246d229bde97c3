"""Cells of a dataset's rows, as Arrow stores them: lists, numbers, texts and dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from shapefix.domains.raggedness import PADDED_IN_MAP, Origin, varying
from shapefix.domains.tokens import element_symbol
from shapefix.interpreter.any_items import any_number
from shapefix.interpreter.containers import Contents, DictValue, ListValue, RaggedDim, TupleValue
from shapefix.interpreter.joins import join, without_length
from shapefix.interpreter.modules import Place
from shapefix.interpreter.per_item_sizes import along, provably_ragged, with_others
from shapefix.interpreter.tensor_values import TensorValue, tensor_row
from shapefix.interpreter.values import FLOAT, Constant, Integer, Number, Text, Unknown, Value
from shapefix.library.data.datasets.objects import Remembered
from shapefix.tensors.bounds import same
from shapefix.tensors.dtypes import is_floating
from shapefix.tensors.layout import Layout, contiguous
from shapefix.tensors.polynomials import Size, every_symbol
from shapefix.tensors.symbols import DrawnNumber, ListedNumber, PerItemSize, Symbol

DEEPEST = 8
JOINED = 64
"""Of more literal rows than this only the first ones are looked into, besides their lengths."""


def stored(value: Value, depth: int = 0) -> Value:
    """Value of a cell after a round trip through Arrow: tensors become nested lists."""
    if depth > DEEPEST:
        return Unknown()
    if isinstance(value, Unknown):
        value = _tensor_if_any(value)
    if isinstance(value, TensorValue):
        return _nested(value, value.layout.sizes) if value.layout is not None else Unknown()
    if isinstance(value, TupleValue):
        return ListValue(tuple(stored(item, depth + 1) for item in value.items))
    if isinstance(value, ListValue):
        contents = value.contents
        items = contents.items and tuple(stored(item, depth + 1) for item in contents.items)
        element = contents.element and stored(contents.element, depth + 1)
        return ListValue(items, element, contents.length, contents.axes)
    if isinstance(value, DictValue):
        fields = {key: stored(item, depth + 1) for key, item in value.fields.items()}
        return DictValue(fields, value.closed, absent=value.absent, written=value.written)
    return value if isinstance(value, (Constant, Integer, Number, Text, Unknown)) else Unknown()


def _tensor_if_any(value: Unknown) -> Value:
    tensor = value.tensor
    return tensor if tensor is not None and tensor.certain and tensor.layout is not None else value


def _nested(tensor: TensorValue, sizes: Sequence[Size]) -> Value:
    """Nested lists of these lengths with the tensor's elements."""
    if sizes:
        return ListValue(None, _nested(tensor, sizes[1:]), sizes[0])
    dtype = tensor.dtype
    if dtype is None or dtype == "bool":
        return Unknown()
    return FLOAT if is_floating(dtype) else Integer(Size.from_symbol(element_symbol(tensor)))


class Lengths:
    """Lengths of rows given one by one; shared by columns of equal lengths."""

    def __init__(self, place: Place, what: str) -> None:
        self._origin = Origin(place, what)
        self._known: dict[tuple[RaggedDim | Size | None, ...], Size] = {}

    def one(self, sizes: Sequence[Size | None], axis: RaggedDim | None = None) -> Size | None:
        """Length of any one row, differing along axis; None if unknown."""
        first = sizes[0] if sizes else None
        if first is None or any(size is None for size in sizes):
            return None
        verdicts = [same(first, size) for size in sizes if size is not None]
        if all(verdicts):
            return first
        known = (axis, *sizes)
        if known not in self._known:
            varying = (symbol for size in sizes if size is not None for symbol in _ragged_symbols(size))
            found = next(varying, None)
            if found is None and False not in verdicts:
                return None
            source = self._origin if found is None else found.source
            self._known[known] = Size.from_symbol(PerItemSize("length", axis, source))
        return self._known[known]


def _ragged_symbols(size: Size) -> list[PerItemSize]:
    """Symbols of a size differing from row to row; a random number may cancel out of it."""
    ragged = [symbol for symbol in every_symbol(size) if isinstance(symbol, PerItemSize)]
    if any(isinstance(symbol, DrawnNumber) for symbol in ragged) and provably_ragged(size) is None:
        return []
    return ragged


def row(column: Value, lengths: Lengths) -> Value:
    """One row of a column given as a list of cells or as a tensor."""
    if isinstance(column, Unknown):
        column = _tensor_if_any(column)
    if isinstance(column, TensorValue):
        sizes = column.layout.sizes if column.layout is not None else ()
        return _nested(column, sizes[1:]) if sizes else Unknown()
    if isinstance(column, TupleValue):
        column = ListValue(column.items)
    if isinstance(column, ListValue):
        if column.items is None:
            return Unknown() if column.element is None else stored(column.element)
        return either([stored(item) for item in column.items], lengths)
    return Unknown(column.hint) if isinstance(column, Unknown) else Unknown()


def either(cells: Sequence[Value], lengths: Lengths, axis: RaggedDim | None = None) -> Value:
    """Representative of several cells; axis is their range, a dimension of one row."""
    if not cells:
        return Unknown()
    first = cells[0]
    if len(cells) == 1:
        return first
    if all(isinstance(cell, ListValue) for cell in cells):
        lists = [cell for cell in cells if isinstance(cell, ListValue)]
        length = lengths.one([cell.length for cell in lists], axis)
        inner: list[Value] = []
        for cell in lists[:JOINED]:
            inner += cell.items if cell.items is not None else [cell.element or Unknown()]
        own = RaggedDim()
        axes = frozenset({own, *(one for cell in lists for one in cell.axes)})
        return ListValue(None, either(inner[: JOINED * 4], lengths, own), length, axes)
    if all(isinstance(cell, DictValue) for cell in cells):
        return reduce(join, cells[:JOINED])
    number = any_number(cells) if axis is None else None
    if number is not None:
        return number
    return without_length(Contents(tuple(cells[: JOINED * 4]))).element or Unknown()


def of_any_numbers(row: DictValue, columns: frozenset[str] | None) -> DictValue:
    """Row after a choice by the numbers in these columns, or in all for None: some may be missing."""
    fields = {
        name: _of_any_number(cell) if columns is None or name in columns else cell
        for name, cell in row.fields.items()
    }
    return DictValue(fields, row.closed, row.kind, row.absent, row.written)


def _of_any_number(cell: Value) -> Value:
    listed = cell.size.only_symbol if isinstance(cell, Integer) else None
    if not isinstance(listed, ListedNumber):
        return cell
    return Integer(Size.symbol("n", least=min(listed.smallest, 0)))


def fresh(value: Value, axis: RaggedDim | None) -> Value:
    """Copy cells into new objects; their varying sizes vary along axis (None: call by call)."""
    return _fresh(value, axis, {}, 0)


def fresh_row(row: DictValue, axis: RaggedDim | None) -> DictValue:
    """Copy a row into new objects; equal sizes remain equal."""
    copy = fresh(row, axis)
    assert isinstance(copy, DictValue)
    return copy


def _fresh(value: Value, axis: RaggedDim | None, known: dict[Symbol, int | Size], depth: int) -> Value:
    if depth > DEEPEST:
        return value
    if isinstance(value, Integer):
        return Integer(_renamed(value.size, axis, known))
    if isinstance(value, ListValue):
        contents = value.contents
        items = contents.items and tuple(_fresh(item, axis, known, depth + 1) for item in contents.items)
        element = contents.element and _fresh(contents.element, axis, known, depth + 1)
        length = contents.length and _renamed(contents.length, axis, known)
        return ListValue(items, element, length, contents.axes)
    if isinstance(value, TupleValue):
        return TupleValue(tuple(_fresh(item, axis, known, depth + 1) for item in value.items), value.names)
    if isinstance(value, TensorValue):
        return _fresh_tensor(value, axis, known)
    if isinstance(value, DictValue):
        fields = {key: _fresh(item, axis, known, depth + 1) for key, item in value.fields.items()}
        absent = Remembered(value.absent) if value.absent is not None else None
        return DictValue(fields, value.closed, value.kind, absent, value.written)
    return value


def _fresh_tensor(
    tensor: TensorValue, axis: RaggedDim | None, known: dict[Symbol, int | Size]
) -> TensorValue:
    layout = tensor.layout
    if layout is not None:
        sizes = tuple(_renamed(size, axis, known) for size in layout.sizes)
        layout = Layout(sizes, tuple(_renamed(stride, axis, known) for stride in layout.strides))
    return TensorValue(
        layout,
        contiguous=tensor.contiguous,
        dtype=tensor.dtype,
        device=tensor.device,
        origin=tensor.origin,
        row=tensor_row(tensor),
    )


def _renamed(size: Size, axis: RaggedDim | None, known: dict[Symbol, int | Size]) -> Size:
    return with_others(size, lambda symbol: along(symbol, axis), known)


def _differ_in_a_map_batch(size: Size, axes: frozenset[RaggedDim]) -> bool:
    symbol = provably_ragged(size, axes)
    source = symbol.source if symbol is not None else None
    return isinstance(source, Origin) and source.what != PADDED_IN_MAP


def columns(row: DictValue, length: Size | None, axis: RaggedDim) -> DictValue:
    """Convert many rows to columns: for each the list of its cells, over axis."""
    cells = fresh_row(row, axis)
    fields = {name: column(cell, length, axis) for name, cell in cells.fields.items()}
    absent = Remembered(lambda key: column(cells.read(key), length, axis))
    return DictValue(fields, row.closed, absent=absent, written=row.written)


def column(cell: Value, length: Size | None, axis: RaggedDim) -> Value:
    """Convert the cells of many rows, over axis, to one value: a tensor of equal tensors, else a list."""
    axes = frozenset({axis})
    if isinstance(cell, TensorValue) and cell.layout is not None:
        sizes = cell.layout.sizes
        if length is not None and all(varying(size, axes) is None for size in sizes):
            return TensorValue(contiguous([length, *sizes]), dtype=cell.dtype)
        if not any(_differ_in_a_map_batch(size, axes) for size in sizes):
            # Rows that were padded map batch by map batch come as one tensor, or as a list of them.
            return Unknown()
    return ListValue(None, cell, length, axes)
