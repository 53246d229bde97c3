"""Rows of tables and columns, chosen by label or by position."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.tables import TableMisuse, TableMisused
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import TupleValue, elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    NONE,
    Constant,
    Integer,
    LibraryObject,
    Slice,
    Unknown,
    Value,
    WholeNumber,
)
from shapefix.library.numpy_arrays import SERIES, as_array
from shapefix.library.ops.value_range import range_of
from shapefix.library.pandas.tables import (
    COLUMNS,
    FRAME,
    SHUFFLED,
    Columns,
    columns_of,
    forget_columns,
    leaves_out_rows,
    part_of_rows,
    rows_of,
    shuffled_at,
    some_rows,
    table_of,
    with_labels_of,
)
from shapefix.library.python.random_numbers import drawn_number
from shapefix.library.registry import declare, method
from shapefix.tensors.dtypes import is_floating
from shapefix.tensors.symbols import SampleIndex

_SHUFFLES = ("sample", "train_test_split", "shuffle")
"""Functions that put the rows of a table into another order; others leave some of them out."""
_ROW = "pandas.<row>"
_LOC = "pandas.<loc>"
_ILOC = "pandas.<iloc>"
_TABLE = "<table>"
"""Field of `table.iloc` with the table."""

for _kind in (_ROW, _LOC, _ILOC):
    declare(_kind, "builtins.object")


@method(FRAME, "@loc")
@method(SERIES, "@loc")
def by_label(call: Call) -> Value:
    """Access by the labels of rows, perhaps for a write."""
    place = shuffled_at(call.receiver)
    made = LibraryObject(_LOC, {}, call.place, {_TABLE: call.receiver or Unknown()})
    if place is not None:
        made.fields[SHUFFLED] = place
    return made


@method(_LOC, "__getitem__")
def labeled(call: Call) -> Value:
    """Columns of all rows, or of those of a mask; Unknown for other labels."""
    index = call.value(0)
    first = index.items[0] if isinstance(index, TupleValue) and index.items else index
    note_label(call, first)
    table = call.receiver.fields.get(_TABLE) if isinstance(call.receiver, LibraryObject) else None
    columns = columns_of(table)
    if columns is None or not isinstance(table, LibraryObject) or first is None:
        return Unknown()
    is_whole = isinstance(first, Slice) and all(
        isinstance(end, Constant) and end.value is None for end in (first.start, first.stop, first.step)
    )
    mask = as_array(first)
    if not is_whole and (mask is None or mask.dtype != "bool"):
        return Unknown()
    rows = table if is_whole else part_of_rows(call, table)
    if index is first:
        return rows
    chosen = index.items[1] if isinstance(index, TupleValue) and len(index.items) == 2 else None
    part = columns_of(rows) or {}
    if isinstance(chosen, Constant):
        return part.get(str(chosen.value), Unknown())
    names = [name.value for name in elements(chosen) or () if isinstance(name, Constant)]
    if not names or len(names) != len(elements(chosen) or ()) or not all(name in part for name in names):
        return Unknown()
    made = table_of(call, {name: part[name] for name in names}, rows_of(table))
    return with_labels_of(call, made, shuffled_at(rows))


@method(_LOC, "__setitem__")
def write_labeled(call: Call) -> Value:
    forget_columns(
        call, call.receiver.fields.get(_TABLE) if isinstance(call.receiver, LibraryObject) else None
    )
    return NONE


def note_label(call: Call, index: Value | None) -> None:
    """Report the position of a sample as the label of a row, after the rows were shuffled."""
    place = shuffled_at(call.receiver)
    is_position = isinstance(index, Integer) and isinstance(index.size.only_symbol, SampleIndex)
    if place is not None and is_position:
        is_order = isinstance(place.node, cst.Call) and place.module.code(place.node.func).endswith(_SHUFFLES)
        reason = TableMisuse.LABEL if is_order else TableMisuse.GAP
        call.ev.emit(TableMisused(call.place, call.ev.calls, reason, call.name, place))


@method(FRAME, "@iloc")
@method(SERIES, "@iloc")
def by_position(call: Call) -> Value:
    if call.receiver is None:
        return Unknown()
    return LibraryObject(_ILOC, {}, call.place, {_TABLE: call.receiver})


@method(_ILOC, "__setitem__")
def write_rows(call: Call) -> Value:
    table = call.receiver.fields.get(_TABLE) if isinstance(call.receiver, LibraryObject) else None
    held = as_array(table)
    if held is not None:
        held.storage.overwritten = True
    forget_columns(call, table)
    return NONE


@method(_ILOC, "__getitem__")
def row(call: Call) -> Value:
    """One row of a table, or some of its columns; one number of a column."""
    table = call.receiver.fields.get(_TABLE) if isinstance(call.receiver, LibraryObject) else None
    index = call.value(0)
    held = as_array(table)
    if held is not None:
        return number_of(call, held) if is_one_row(index) else Unknown()
    columns = columns_of(table)
    if isinstance(table, LibraryObject) and table.kind == FRAME and isinstance(index, Slice):
        return part_of_rows(call, table) if leaves_out_rows(call, index) else _first_rows(call, columns)
    if columns is None or not isinstance(table, LibraryObject):
        return Unknown()
    if isinstance(index, TupleValue) and len(index.items) == 2:
        return _block(call, table, columns, *index.items)
    if is_one_row(index):
        return LibraryObject(_ROW, {}, call.place, {COLUMNS: dict(columns)})
    return Unknown()


def _first_rows(call: Call, columns: Columns | None) -> Value:
    return Unknown() if columns is None else some_rows(call, columns)


def _block(call: Call, table: LibraryObject, columns: Columns, rows: Value, chosen: Value) -> Value:
    """Part of a table: `table.iloc[:, :-1]`, `table.iloc[:, -1]`."""
    whole = (rows.start, rows.stop, rows.step) if isinstance(rows, Slice) else None
    if whole is None or any(not isinstance(end, Constant) or end.value is not None for end in whole):
        return Unknown()
    if isinstance(chosen, Constant) and type(chosen.value) is int:
        found = list(columns.values())
        return found[chosen.value] if -len(found) <= chosen.value < len(found) else Unknown()
    if not isinstance(chosen, Slice):
        return Unknown()
    ends = (chosen.start, chosen.stop, chosen.step)
    bounds = [end.value if isinstance(end, Constant) else ... for end in ends]
    start, stop, step = (bound if type(bound) is int else None for bound in bounds)
    if bounds != [start, stop, step] or step == 0:
        return Unknown()
    kept = list(columns)[start:stop:step]
    return table_of(call, {name: columns[name] for name in kept}, rows_of(table))


def is_one_row(index: Value | None) -> bool:
    """Check for the position of one row: an int, or the unknown index of a sample."""
    return isinstance(index, (Integer, Unknown)) or (isinstance(index, Constant) and type(index.value) is int)


@method(_ROW, "__getitem__")
def cell(call: Call) -> Value:
    key = call.value(0)
    columns = call.receiver.fields.get(COLUMNS, {}) if isinstance(call.receiver, LibraryObject) else {}
    held = as_array(columns.get(key.value)) if isinstance(key, Constant) else None
    others = [as_array(column) for column in columns.values()]
    if held is None or any(each is None or each.dtype is None for each in others):
        return Unknown()
    # A row of whole numbers and floats is one of floats.
    has_floats = any(each is not None and is_floating(each.dtype or "") for each in others)
    number = number_of(call, held)
    return WholeNumber(number.size) if has_floats and isinstance(number, Integer) else number


def number_of(call: Call, column: TensorValue) -> Value:
    """Any number of a column."""
    # A float is one of numpy, which makes a tensor of float64.
    known = range_of(column)
    number = Unknown() if known is None else drawn_number(call, known.least.value, known.most.value)
    is_float = column.dtype is None or is_floating(column.dtype)
    return WholeNumber(number.size) if is_float and isinstance(number, Integer) else number
