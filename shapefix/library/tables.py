"""Tables of pandas, as far as they become tensors: columns with their dtype and range of numbers."""

from __future__ import annotations

from collections.abc import Mapping

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue, elements
from shapefix.interpreter.tensor_values import TensorValue, ValueRange
from shapefix.interpreter.values import (
    NONE,
    Constant,
    Integer,
    LibraryObject,
    Slice,
    Unknown,
    Value,
    integer,
)
from shapefix.library.numpy_arrays import (
    ARRAY,
    SERIES,
    as_array,
    new_array,
    numpy_dtype,
    series_of,
    with_numbers_of,
    with_range,
)
from shapefix.library.numpy_operations import promoted
from shapefix.library.ops.nested_lists import leaf_dtype
from shapefix.library.ops.value_range import listed, part_of, range_of
from shapefix.library.python.random_numbers import drawn_number
from shapefix.library.registry import METHODS, Handler, declare, function, method
from shapefix.tensors.dtypes import is_floating
from shapefix.tensors.layout import contiguous, unknown_strides
from shapefix.tensors.polynomials import Size

FRAME = "pandas.DataFrame"
_ROW = "pandas.<row>"
_ILOC = "pandas.<iloc>"
_TABLE = "<table>"
_COLUMNS = "<columns>"
_ROWS = "<rows>"
_ATTRIBUTES = frozenset(
    {"T", "at", "columns", "count", "dtypes", "iat", "iloc", "index", "items", "loc", "max", "mean", "min"}
    | {"mode", "name", "ndim", "rank", "shape", "size", "std", "style", "sum", "values", "copy", "filter"}
)
"""Attributes of tables that hide a column of their name."""

declare(FRAME, "builtins.object")
declare(_ROW, "builtins.object")
declare(_ILOC, "builtins.object")

Columns = Mapping[str, LibraryObject]


def _table(call: Call, columns: Columns, rows: Size) -> Value:
    made = LibraryObject(FRAME, {}, call.place)
    _store(call, made, columns, rows)
    return made


def _store(call: Call, table: LibraryObject, columns: Columns, rows: Size) -> None:
    call.ev.journal.write(table.fields, _COLUMNS, dict(columns))
    call.ev.journal.write(table.fields, _ROWS, rows)
    for name, column in columns.items():
        if name not in _ATTRIBUTES:
            call.ev.journal.write(table.fields, name, column)


def _lose(call: Call, table: Value | None) -> None:
    """Forget all columns of a table after a write to it."""
    if isinstance(table, LibraryObject):
        for name in columns_of(table) or ():
            call.ev.journal.write(table.fields, name, Unknown())
        call.ev.journal.write(table.fields, _COLUMNS, None)


def columns_of(table: Value | None) -> Columns | None:
    """Columns of a table by name; None for other values, or once a column was replaced."""
    if not isinstance(table, LibraryObject) or table.kind != FRAME:
        return None
    columns: Columns | None = table.fields.get(_COLUMNS)
    if columns is None or any(table.fields.get(n, c) is not c for n, c in columns.items()):
        return None
    return columns


def rows_of(table: LibraryObject) -> Size:
    """Number of rows of a table."""
    rows = table.fields.get(_ROWS)
    return rows if isinstance(rows, Size) else Size.symbol("rows")


@function("pandas.DataFrame")
def created(call: Call) -> Value:
    """Table of a dictionary of columns, or of an array and the names of its columns."""
    data, names = call.value(0, "data"), call.value(2, "columns")
    if call.arguments.open or {"dtype", "index"} & call.arguments.keywords.keys():
        return Unknown()
    if isinstance(data, DictValue) and data.closed and names is None and data.fields:
        return _of_columns(call, data)
    held = as_array(data)
    texts = [n.value for n in elements(names) or () if isinstance(n, Constant)]
    if held is None or held.layout is None or held.layout.rank != 2 or not texts:
        return Unknown()
    rows, width = held.layout.sizes
    if width.value != len(texts) or not all(isinstance(text, str) for text in texts):
        return Unknown()
    known = range_of(held)
    return _table(call, {text: _column(call, rows, held.dtype, known) for text in texts}, rows)


def _of_columns(call: Call, data: DictValue) -> Value:
    columns: dict[str, LibraryObject] = {}
    lengths: list[Size] = []
    for name, value in data.fields.items():
        held, items = as_array(value), elements(value)
        if not isinstance(name, str):
            return Unknown()
        if held is not None and held.layout is not None and held.layout.rank == 1:
            length = held.layout.sizes[0]
            columns[name] = _column(call, length, held.dtype, range_of(held))
        elif items:
            length = Size.of(len(items))
            leaf = leaf_dtype(value)
            dtype = "float64" if leaf == "float32" else leaf
            is_text = any(isinstance(i, Constant) and isinstance(i.value, (str, type(None))) for i in items)
            known = None if is_text else listed(TensorValue(), value).extremes
            columns[name] = _column(call, length, None if is_text else dtype, known)
        else:
            return Unknown()
        lengths.append(length)
    return _table(call, columns, lengths[0]) if len(set(lengths)) == 1 else Unknown()


def _column(call: Call, rows: Size, dtype: str | None, known: ValueRange | None) -> LibraryObject:
    array = new_array(call, contiguous([rows]), dtype)
    column = series_of(with_range(array, known))
    assert isinstance(column, LibraryObject)
    return column


@method(FRAME, "__getitem__")
def read(call: Call) -> Value:
    """Column of a name, or a table of some of the columns, or of some of the rows."""
    columns, key = columns_of(call.receiver), call.value(0)
    if columns is None or not isinstance(call.receiver, LibraryObject):
        return Unknown()
    if isinstance(key, Constant) and isinstance(key.value, str):
        return columns.get(key.value) or Unknown()
    names = [n.value for n in elements(key) or () if isinstance(n, Constant)]
    if names and all(name in columns for name in names):
        return _table(call, {name: columns[name] for name in names}, rows_of(call.receiver))
    if elements(key) is not None or (isinstance(key, ListValue) and as_array(key) is None):
        return Unknown()
    return _some_rows(call, columns) if as_array(key) is not None else Unknown()


def _some_rows(call: Call, columns: Columns) -> Value:
    """Table of some of the rows: their numbers are a part of the range."""
    rows = Size.symbol("rows", least=0)
    arrays = {name: as_array(column) for name, column in columns.items()}
    kept = {n: _column(call, rows, None if a is None else a.dtype, None) for n, a in arrays.items()}
    return _table(call, kept, rows)


@method(FRAME, "__setitem__")
def write(call: Call) -> Value:
    table, key, value = call.receiver, call.value(0), call.value(1)
    columns = columns_of(table)
    if not isinstance(table, LibraryObject):
        return NONE
    if columns is None or not isinstance(key, Constant) or not isinstance(key.value, str):
        _lose(call, table)
        return NONE
    held, rows = as_array(value), rows_of(table)
    plain = held is not None and held.layout is not None and held.layout.rank == 1
    dtype, known = (held.dtype, range_of(held)) if plain and held is not None else (None, None)
    column = _column(call, rows, dtype, known)
    _store(call, table, {**columns, key.value: column}, rows)
    return NONE


@method(FRAME, "@values")
def values(call: Call) -> Value:
    """Array of all columns, in their common dtype."""
    columns, table = columns_of(call.receiver), call.receiver
    if not columns or not isinstance(table, LibraryObject):
        return Unknown()
    held = [as_array(column) for column in columns.values()]
    kinds = {None if each is None else each.dtype for each in held}
    dtype = kinds.pop()
    for kind in kinds:
        # Booleans beside numbers make an array of objects.
        dtype = None if "bool" in (dtype, kind) else promoted(dtype, kind)
    if kinds and any(each is None or each.dtype is None for each in held):
        dtype = None
    # The columns of one dtype lie side by side in memory.
    made = new_array(call, unknown_strides((rows_of(table), Size.of(len(columns)))), dtype)
    known = [range_of(each) for each in held]
    return with_range(made, known[0]) if len(known) == 1 else made


@method(FRAME, "to_numpy")
def to_numpy(call: Call) -> Value:
    return _as_asked(call, values(call))


def _as_asked(call: Call, array: Value) -> Value:
    """Array in the dtype of `to_numpy(dtype=…)`."""
    asked, held = call.value(0, "dtype"), as_array(array)
    if asked is None or held is None:
        return array
    return with_numbers_of(call, held, held.layout, numpy_dtype(asked))


@method(FRAME, "astype")
def converted(call: Call) -> Value:
    columns, table = columns_of(call.receiver), call.receiver
    dtype = numpy_dtype(call.value(0, "dtype"))
    if columns is None or not isinstance(table, LibraryObject) or dtype is None:
        return Unknown()
    held = {name: as_array(column) for name, column in columns.items()}
    rows = rows_of(table)
    known = {name: None if array is None else range_of(array) for name, array in held.items()}
    return _table(call, {name: _column(call, rows, dtype, known[name]) for name in columns}, rows)


@method(FRAME, "drop")
def without(call: Call) -> Value:
    """Table without some columns."""
    keywords, table = call.arguments.keywords, call.receiver
    if "inplace" in keywords or call.arguments.open:
        _lose(call, table)
        return Unknown()
    columns, labels = columns_of(table), keywords.get("columns")
    axis = call.value(1, "axis")
    if labels is None and isinstance(axis, Constant) and axis.value in (1, "columns"):
        labels = call.value(0, "labels")
    given = (labels,) if isinstance(labels, Constant) else elements(labels) or ()
    names = {name.value for name in given if isinstance(name, Constant)}
    if columns is None or not names or len(names) != len(given) or not isinstance(table, LibraryObject):
        return Unknown()
    return _table(call, {n: c for n, c in columns.items() if n not in names}, rows_of(table))


@method(FRAME, "copy", "reset_index", "head", "tail", "sample")
def same_columns(call: Call) -> Value:
    """Table of the same columns, and of all or some of the rows."""
    columns, table, name = columns_of(call.receiver), call.receiver, call.name.rpartition(".")[2]
    if "inplace" in call.arguments.keywords:
        _lose(call, table)
        return Unknown()
    if columns is None or not isinstance(table, LibraryObject):
        return Unknown()
    whole = name == "copy" or (name == "sample" and call.constant(1, "frac") == 1)
    if name == "reset_index" and call.constant(-1, "drop") is not True:
        return Unknown()
    if whole or name == "reset_index":
        return _table(call, columns, rows_of(table))
    return _some_rows(call, columns)


@method(
    FRAME,
    *("insert", "pop", "update", "fillna", "rename", "replace", "dropna", "drop_duplicates", "sort_values"),
    *("set_index", "eval", "query", "interpolate", "ffill", "bfill", "clip", "where", "mask", "@loc", "@at"),
    *("@iat", "apply", "pipe", "assign", "transform"),
)
def perhaps_written(call: Call) -> Value:
    """Forget a table after a possible change."""
    _lose(call, call.receiver)
    return Unknown()


@method(FRAME, "@columns")
def names_of(call: Call) -> Value:
    columns = columns_of(call.receiver)
    return Unknown("columns") if columns is None else ListValue(tuple(map(Constant, columns)))


@method(FRAME, "@shape")
def shape(call: Call) -> Value:
    columns, table = columns_of(call.receiver), call.receiver
    if columns is None or not isinstance(table, LibraryObject):
        return Unknown("shape")
    return TupleValue((integer(rows_of(table)), Constant(len(columns))))


@method(FRAME, "__len__")
def length(call: Call) -> Value:
    table = call.receiver
    return integer(rows_of(table)) if isinstance(table, LibraryObject) else Unknown()


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
    _lose(call, table)
    return NONE


@method(_ILOC, "__getitem__")
def row(call: Call) -> Value:
    """One row of a table, or some of its columns; one number of a column."""
    table = call.receiver.fields.get(_TABLE) if isinstance(call.receiver, LibraryObject) else None
    index = call.value(0)
    held = as_array(table)
    if held is not None:
        return number_of(call, held) if _is_one(index) else Unknown()
    columns = columns_of(table)
    if columns is None or not isinstance(table, LibraryObject):
        return Unknown()
    if isinstance(index, TupleValue) and len(index.items) == 2:
        return _block(call, table, columns, *index.items)
    if _is_one(index):
        return LibraryObject(_ROW, {}, call.place, {_COLUMNS: dict(columns)})
    return _some_rows(call, columns) if isinstance(index, Slice) else Unknown()


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
    return _table(call, {name: columns[name] for name in kept}, rows_of(table))


def _is_one(index: Value | None) -> bool:
    """Check for the position of one row: an int, or the unknown index of a sample."""
    return isinstance(index, (Integer, Unknown)) or (isinstance(index, Constant) and type(index.value) is int)


@method(_ROW, "__getitem__")
def cell(call: Call) -> Value:
    key = call.value(0)
    columns = call.receiver.fields.get(_COLUMNS, {}) if isinstance(call.receiver, LibraryObject) else {}
    held = as_array(columns.get(key.value)) if isinstance(key, Constant) else None
    others = [as_array(column) for column in columns.values()]
    if held is None or any(each is None or each.dtype is None for each in others):
        return Unknown()
    # A row of whole numbers and floats is one of floats.
    has_floats = any(each is not None and is_floating(each.dtype or "") for each in others)
    return Unknown() if has_floats else number_of(call, held)


def number_of(call: Call, column: TensorValue) -> Value:
    """Any number of a column."""
    # A float is one of numpy, which makes a tensor of float64.
    known = range_of(column)
    return Unknown() if known is None else drawn_number(call, known.least.value, known.most.value)


def _of_array(name: str, *, is_column: bool) -> Handler:
    """Handler of an array's method for columns."""

    def call_of_column(call: Call) -> Value:
        under = f"{ARRAY}.{name.removeprefix('@')}"
        made = METHODS[ARRAY][name](Call(call.ev, under, call.place, call.arguments, call.receiver))
        return series_of(made) if is_column else made

    return call_of_column


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
    method(SERIES, f"__{_name}__")(_of_array(f"__{_name}__", is_column=True))
    method(SERIES, f"__r{_name}__")(_of_array(f"__r{_name}__", is_column=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    method(SERIES, f"__{_name}__")(_of_array(f"__{_name}__", is_column=True))
method(SERIES, "astype")(_of_array("astype", is_column=True))
for _name in ("__len__", "@shape", "__setitem__"):
    method(SERIES, _name)(_of_array(_name, is_column=False))


@method(SERIES, "copy", "reset_index")
def same_column(call: Call) -> Value:
    held = as_array(call.receiver)
    plain = call.name.endswith("copy") or call.constant(-1, "drop") is True
    if held is None or not plain or "inplace" in call.arguments.keywords:
        return Unknown()
    return series_of(with_numbers_of(call, held, held.layout, held.dtype))


@method(SERIES, "@values")
def values_of_column(call: Call) -> Value:
    held = as_array(call.receiver)
    if held is None:
        return Unknown()
    return with_numbers_of(call, held, held.layout, held.dtype)


@method(SERIES, "to_numpy")
def column_to_numpy(call: Call) -> Value:
    return _as_asked(call, values_of_column(call))


@method(SERIES, "tolist", "to_list")
def column_to_list(call: Call) -> Value:
    held = as_array(call.receiver)
    length_ = held.layout.sizes[0] if held is not None and held.layout is not None else None
    return ListValue(None, Unknown() if held is None else number_of(call, held), length_)


@method(SERIES, "__getitem__")
def of_column(call: Call) -> Value:
    held = as_array(call.receiver)
    return number_of(call, held) if held is not None and _is_one(call.value(0)) else Unknown()


@method(SERIES, "map", "replace")
def mapped(call: Call) -> Value:
    """Column of the numbers in a dictionary: `table["label"].map({"no": 0, "yes": 1})`."""
    held, by = as_array(call.receiver), call.value(0)
    if held is None or not isinstance(by, DictValue) or not by.closed or call.arguments.keywords:
        return Unknown()
    numbers = ListValue(tuple(by.fields.values()))
    sizes = held.layout.sizes if held.layout is not None else None
    whole = leaf_dtype(numbers) == "int64" and call.name.endswith("map")
    if not whole or sizes is None:
        return Unknown()
    return _column(call, sizes[0], "int64", part_of(listed(TensorValue(), numbers).extremes))


def of_rows(call: Call, table: LibraryObject, rows: Size) -> Value:
    """Table of arbitrary rows, as many as stated."""
    columns = columns_of(table)
    if columns is None:
        return Unknown()
    kept = {}
    for name, column in columns.items():
        held = as_array(column)
        kept[name] = _column(call, rows, None if held is None else held.dtype, part_of(range_of(held)))
    return _table(call, kept, rows)
