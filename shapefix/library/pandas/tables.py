"""Tables of pandas: columns with their dtype and range of numbers, and the labels of the rows."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from shapefix.domains.tables import TableMisuse, TableMisused
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, elements
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue, ValueRange
from shapefix.interpreter.values import Constant, LibraryObject, Slice, Unknown, Value
from shapefix.library.numpy_arrays import (
    SERIES,
    as_array,
    new_array,
    numpy_dtype,
    series_of,
    with_numbers_of,
    with_range,
)
from shapefix.library.ops.nested_lists import leaf_dtype
from shapefix.library.ops.value_range import listed, part_of, range_of
from shapefix.library.python.unordered import KIND, ONE_OBJECT, class_of_items
from shapefix.library.registry import declare
from shapefix.tensors.layout import contiguous
from shapefix.tensors.polynomials import Size

FRAME = "pandas.DataFrame"
COLUMNS = "<columns>"
"""Field of a table, and of one of its rows, with the columns by name."""
_ROWS = "<rows>"
TEXTS = "<texts>"
"""Field of a column of texts, and of an array of objects, with the name of the column."""
MIXED = "<mixed>"
"""Field of an array of objects: booleans and numbers of a table."""
_ITEMS = "<items>"
"""Field of a column with the list of its values."""
_MOST = 512
"""Maximum number of values kept one by one."""
SHUFFLED = "<shuffled>"
"""Field of a table or column with shuffled labels: the place of the shuffle."""
_ATTRIBUTES = frozenset(
    {"T", "at", "columns", "count", "dtypes", "iat", "iloc", "index", "items", "loc", "max", "mean", "min"}
    | {"mode", "name", "ndim", "rank", "shape", "size", "std", "style", "sum", "values", "copy", "filter"}
)
"""Attributes of tables that hide a column of their name."""

declare(FRAME, "builtins.object")

Columns = Mapping[str, LibraryObject]


def table_of(call: Call, columns: Columns, rows: Size) -> Value:
    made = LibraryObject(FRAME, {}, call.place)
    store(call, made, columns, rows)
    return made


def store(call: Call, table: LibraryObject, columns: Columns, rows: Size) -> None:
    call.ev.journal.write(table.fields, COLUMNS, dict(columns))
    call.ev.journal.write(table.fields, _ROWS, rows)
    for name, column in columns.items():
        if name not in _ATTRIBUTES:
            call.ev.journal.write(table.fields, name, column)


def forget_columns(call: Call, table: Value | None) -> None:
    """Forget all columns of a table after a write to it, and the place of a shuffle."""
    if isinstance(table, LibraryObject):
        call.ev.journal.write(table.fields, SHUFFLED, None)
        for name in columns_of(table) or ():
            call.ev.journal.write(table.fields, name, Unknown())
        call.ev.journal.write(table.fields, COLUMNS, None)


def columns_of(table: Value | None) -> Columns | None:
    """Columns of a table by name; None for other values, or once a column was replaced."""
    if not isinstance(table, LibraryObject) or table.kind != FRAME:
        return None
    columns: Columns | None = table.fields.get(COLUMNS)
    if columns is None or any(table.fields.get(n, c) is not c for n, c in columns.items()):
        return None
    return columns


def rows_of(table: LibraryObject) -> Size:
    """Number of rows of a table."""
    rows = table.fields.get(_ROWS)
    return rows if isinstance(rows, Size) else Size.symbol("rows")


def shuffled_at(value: Value | None) -> Place | None:
    """Place of shuffling the rows of a table or column together with their labels; None if unknown."""
    if not isinstance(value, LibraryObject) or "index" in value.fields:
        # `table.index = range(len(table))`
        return None
    place = value.fields.get(SHUFFLED)
    return place if isinstance(place, Place) else None


def with_labels_of(call: Call, made: Value, place: Place | None) -> Value:
    """Copy of a table or column with rows shuffled at a place; None for rows with new labels."""
    if not isinstance(made, LibraryObject) or made.kind not in (FRAME, SERIES):
        return made
    columns = columns_of(made)
    labels = {} if place is None else {SHUFFLED: place}
    fields = {key: value for key, value in made.fields.items() if key != SHUFFLED}
    copy = LibraryObject(made.kind, {}, made.place, {**fields, **labels})
    if made.kind == FRAME and columns is not None:
        named = {name: with_labels_of(call, column, place) for name, column in columns.items()}
        kept = {name: column for name, column in named.items() if isinstance(column, LibraryObject)}
        store(call, copy, kept, rows_of(made))
    return copy


def texts_of(value: Value | None) -> str | None:
    """Name of the column of texts in an array of objects, or of such a column; None for other values."""
    name = value.fields.get(TEXTS) if isinstance(value, LibraryObject) else None
    return name if isinstance(name, str) else None


def column_of_list(call: Call, rows: Size, value: Value, name: str) -> LibraryObject:
    """Column of the items of a list."""
    items = elements(value) or ()
    leaf = leaf_dtype(value)
    dtype = "float64" if leaf == "float32" else leaf
    is_text = any(isinstance(i, Constant) and isinstance(i.value, (str, type(None))) for i in items)
    known = None if is_text else listed(TensorValue(), value).extremes
    column = column_of(call, rows, None if is_text else dtype, known)
    if items and all(isinstance(i, Constant) and isinstance(i.value, str) for i in items):
        column.fields[TEXTS] = name
    if items and len(items) <= _MOST and all(isinstance(i, Constant) for i in items):
        column.fields[_ITEMS] = ListValue(items)
    return column


def known_items(column: Value | None) -> tuple[Constant, ...] | None:
    """Values of a column one by one; None if they are not known."""
    held = as_array(column)
    if not isinstance(column, LibraryObject) or held is None or held.storage.is_written:
        return None
    items = elements(column.fields.get(_ITEMS)) or ()
    known = tuple(item for item in items if isinstance(item, Constant))
    return known if known and len(known) == len(items) else None


def column_of(call: Call, rows: Size, dtype: str | None, known: ValueRange | None) -> LibraryObject:
    array = new_array(call, contiguous([rows]), dtype)
    column = series_of(with_range(array, known))
    assert isinstance(column, LibraryObject)
    return column


def some_rows(call: Call, columns: Columns) -> Value:
    """Table of some of the rows: their numbers are a part of the range."""
    rows = Size.symbol("rows", least=0)
    arrays = {name: as_array(column) for name, column in columns.items()}
    kept = {n: column_of(call, rows, None if a is None else a.dtype, None) for n, a in arrays.items()}
    return table_of(call, kept, rows)


def part_of_rows(call: Call, table: LibraryObject) -> Value:
    """Some of the rows of a table, with their labels: there are gaps between these."""
    columns = columns_of(table)
    made = LibraryObject(FRAME, {}, call.place) if columns is None else some_rows(call, columns)
    return with_labels_of(call, made, call.place)


def leaves_out_rows(call: Call, key: Value | None) -> bool:
    """Check an index for a mask, or for a slice after the first row."""
    if isinstance(key, Slice):
        start = key.start.value if isinstance(key.start, Constant) else None
        return type(start) is int and start != 0
    held, node = as_array(key), call.place.node
    if held is not None:
        return held.dtype == "bool"
    if not isinstance(key, Unknown) or not isinstance(node, cst.Subscript) or len(node.slice) != 1:
        return False
    index = node.slice[0].slice
    # A comparison with a column is a mask, even if the column is not known.
    return isinstance(index, cst.Index) and isinstance(index.value, cst.Comparison)


def in_asked_dtype(call: Call, array: Value) -> Value:
    """Array in the dtype of `to_numpy(dtype=…)`."""
    asked, held = call.value(0, "dtype"), as_array(array)
    if asked is None or held is None:
        return array
    return with_numbers_of(call, held, held.layout, numpy_dtype(asked))


def of_rows(call: Call, table: LibraryObject, rows: Size) -> Value:
    """Table of arbitrary rows, as many as stated, in any order."""
    columns = columns_of(table)
    if columns is None:
        return with_labels_of(call, LibraryObject(FRAME, {}, call.place), call.place)
    kept = {}
    for name, column in columns.items():
        held = as_array(column)
        kept[name] = column_of(call, rows, None if held is None else held.dtype, part_of(range_of(held)))
        if texts_of(column) is not None:
            kept[name].fields[TEXTS] = name
    return with_labels_of(call, table_of(call, kept, rows), call.place)


def note_table(call: Call, data: Value | None) -> None:
    """Report a table, a column, or an array of texts as the data of a tensor, if torch rejects it."""
    if call.arguments.open:
        return
    items, array = class_of_items(call), None
    if isinstance(data, LibraryObject) and data.kind == ONE_OBJECT:
        items, array = str(data.fields[KIND]), data.place
    if items is not None:
        call.ev.emit(TableMisused(call.place, call.ev.calls, TableMisuse.ITEMS, call.name, array, items))
    if items is not None or not isinstance(data, LibraryObject):
        return
    is_shared = call.name == "torch.from_numpy"
    if data.kind == FRAME:
        reason = TableMisuse.TABLE
    elif data.kind == SERIES and is_shared:
        reason = TableMisuse.COLUMN
    elif texts_of(data) is not None:
        reason = TableMisuse.TEXTS
    elif data.fields.get(MIXED) is True:
        reason = TableMisuse.MIXED
    else:
        return
    call.ev.emit(TableMisused(call.place, call.ev.calls, reason, call.name, data.place, texts_of(data) or ""))
