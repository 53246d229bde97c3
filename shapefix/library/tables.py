"""Tables of pandas, as far as they become tensors: columns with their dtype and range of numbers."""

from __future__ import annotations

from collections.abc import Mapping

from shapefix.domains.tables import TableMisuse, TableMisused
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue, elements
from shapefix.interpreter.modules import Place
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
from shapefix.library.required_versions import is_at_least
from shapefix.tensors.dtypes import is_floating
from shapefix.tensors.layout import contiguous, unknown_strides
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import SampleIndex

FRAME = "pandas.DataFrame"
_ROW = "pandas.<row>"
_ILOC = "pandas.<iloc>"
_TABLE = "<table>"
_COLUMNS = "<columns>"
_ROWS = "<rows>"
_LOC = "pandas.<loc>"
_TEXTS = "<texts>"
"""Field of a column of texts, and of an array of objects, with the name of the column."""
_SHUFFLED = "<shuffled>"
"""Field of a table or column with shuffled labels: the place of the shuffle."""
_OF_ONE_DTYPE = "<dtype>"
"""Field of a table of unknown columns with one dtype."""
_ATTRIBUTES = frozenset(
    {"T", "at", "columns", "count", "dtypes", "iat", "iloc", "index", "items", "loc", "max", "mean", "min"}
    | {"mode", "name", "ndim", "rank", "shape", "size", "std", "style", "sum", "values", "copy", "filter"}
)
"""Attributes of tables that hide a column of their name."""

declare(FRAME, "builtins.object")
declare(_ROW, "builtins.object")
declare(_ILOC, "builtins.object")
declare(_LOC, "builtins.object")

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


def shuffled_at(value: Value | None) -> Place | None:
    """Place of shuffling the rows of a table or column together with their labels; None if unknown."""
    place = value.fields.get(_SHUFFLED) if isinstance(value, LibraryObject) else None
    return place if isinstance(place, Place) else None


def with_labels_of(call: Call, made: Value, place: Place | None) -> Value:
    """Copy of a table or column with rows shuffled at a place; None for rows with new labels."""
    if not isinstance(made, LibraryObject) or made.kind not in (FRAME, SERIES):
        return made
    columns = columns_of(made)
    labels = {} if place is None else {_SHUFFLED: place}
    fields = {key: value for key, value in made.fields.items() if key != _SHUFFLED}
    copy = LibraryObject(made.kind, {}, made.place, {**fields, **labels})
    if made.kind == FRAME and columns is not None:
        named = {name: with_labels_of(call, column, place) for name, column in columns.items()}
        kept = {name: column for name, column in named.items() if isinstance(column, LibraryObject)}
        _store(call, copy, kept, rows_of(made))
    return copy


def texts_of(value: Value | None) -> str | None:
    """Name of the column of texts in an array of objects, or of such a column; None for other values."""
    name = value.fields.get(_TEXTS) if isinstance(value, LibraryObject) else None
    return name if isinstance(name, str) else None


@function("pandas.read_csv", "pandas.read_excel", "pandas.read_parquet", "pandas.read_json")
def read_file(call: Call) -> Value:
    """Table of unknown columns."""
    given = call.arguments.keywords.keys() & {
        "chunksize",
        "iterator",
        "sheet_name",
        "typ",
        "lines",
        "squeeze",
    }
    return Unknown() if given or call.arguments.open else LibraryObject(FRAME, {}, call.place)


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
            columns[name] = _listed(call, length, value, name)
        elif isinstance(value, ListValue) and value.length is not None:
            length = value.length
            columns[name] = _listed(call, length, value, name)
        else:
            return Unknown()
        lengths.append(length)
    return _table(call, columns, lengths[0]) if len(set(lengths)) == 1 else Unknown()


def _listed(call: Call, rows: Size, value: Value, name: str) -> LibraryObject:
    """Column of the items of a list."""
    items = elements(value) or ()
    leaf = leaf_dtype(value)
    dtype = "float64" if leaf == "float32" else leaf
    is_text = any(isinstance(i, Constant) and isinstance(i.value, (str, type(None))) for i in items)
    known = None if is_text else listed(TensorValue(), value).extremes
    column = _column(call, rows, None if is_text else dtype, known)
    if items and all(isinstance(i, Constant) and isinstance(i.value, str) for i in items):
        column.fields[_TEXTS] = name
    return column


def _column(call: Call, rows: Size, dtype: str | None, known: ValueRange | None) -> LibraryObject:
    array = new_array(call, contiguous([rows]), dtype)
    column = series_of(with_range(array, known))
    assert isinstance(column, LibraryObject)
    return column


@method(FRAME, "__getitem__")
def read(call: Call) -> Value:
    """Column of a name, or a table of some of the columns, or of some of the rows."""
    columns, key = columns_of(call.receiver), call.value(0)
    place = shuffled_at(call.receiver)
    if columns is None or not isinstance(call.receiver, LibraryObject):
        is_name = isinstance(key, Constant) and isinstance(key.value, str)
        column = LibraryObject(SERIES, {}, call.place) if is_name and place is not None else Unknown()
        return with_labels_of(call, column, place)
    if isinstance(key, Constant) and isinstance(key.value, str):
        return columns.get(key.value) or Unknown()
    names = [n.value for n in elements(key) or () if isinstance(n, Constant)]
    if names and all(name in columns for name in names):
        chosen = {name: columns[name] for name in names}
        return with_labels_of(call, _table(call, chosen, rows_of(call.receiver)), place)
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
    is_list = isinstance(value, (ListValue, TupleValue))
    if value is not None and is_list:
        column = _listed(call, rows, value, key.value)
    else:
        column = _column(call, rows, dtype, known)
    if texts_of(value) is not None:
        column.fields[_TEXTS] = key.value
    if (place := shuffled_at(table)) is not None:
        column.fields[_SHUFFLED] = place
    _store(call, table, {**columns, key.value: column}, rows)
    return NONE


@method(FRAME, "@values")
def values(call: Call) -> Value:
    """Array of all columns, in their common dtype."""
    columns, table = columns_of(call.receiver), call.receiver
    if not columns or not isinstance(table, LibraryObject):
        one = table.fields.get(_OF_ONE_DTYPE) if isinstance(table, LibraryObject) else None
        layout = unknown_strides((Size.symbol("rows"), Size.symbol("columns")))
        return new_array(call, layout, one) if isinstance(one, str) else Unknown()
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
    texts = [name for column in columns.values() if (name := texts_of(column)) is not None]
    if texts and isinstance(made, LibraryObject):
        made.fields[_TEXTS] = texts[0]
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
    left = {n: c for n, c in columns.items() if n not in names}
    return with_labels_of(call, _table(call, left, rows_of(table)), shuffled_at(table))


@method(FRAME, "copy", "reset_index", "head", "tail", "sample")
def same_columns(call: Call) -> Value:
    """Table of the same columns, and of all or some of the rows."""
    columns, table, name = columns_of(call.receiver), call.receiver, call.name.rpartition(".")[2]
    if "inplace" in call.arguments.keywords:
        _lose(call, table)
        return Unknown()
    place = None if name == "reset_index" else shuffled_at(table)
    if name == "sample" and _leaves_out_rows(call):
        place = call.place
    if columns is None or not isinstance(table, LibraryObject):
        made = LibraryObject(FRAME, {}, call.place) if isinstance(table, LibraryObject) else Unknown()
        return with_labels_of(call, made, place)
    whole = name == "copy" or (name == "sample" and call.constant(1, "frac") == 1)
    if name == "reset_index" and call.constant(-1, "drop") is not True:
        return Unknown()
    if whole or name == "reset_index":
        return with_labels_of(call, _table(call, columns, rows_of(table)), place)
    return with_labels_of(call, _some_rows(call, columns), place)


def _leaves_out_rows(call: Call) -> bool:
    """Check for a sample of fewer rows with their labels."""
    keywords, part = call.arguments.keywords, call.constant(1, "frac")
    if call.arguments.open or keywords.keys() & {"ignore_index", "replace", "axis"}:
        return False
    return isinstance(part, float) and part < 1


@method(
    FRAME,
    *("insert", "pop", "update", "fillna", "rename", "replace", "dropna", "drop_duplicates", "sort_values"),
    *("set_index", "eval", "query", "interpolate", "ffill", "bfill", "clip", "where", "mask", "@at"),
    *("@iat", "apply", "pipe", "assign", "transform"),
)
def perhaps_written(call: Call) -> Value:
    """Forget a table after a possible change."""
    _lose(call, call.receiver)
    return Unknown()


@method(FRAME, "@loc")
@method(SERIES, "@loc")
def by_label(call: Call) -> Value:
    """Access by the labels of rows, perhaps for a write."""
    place = shuffled_at(call.receiver)
    _lose(call, call.receiver)
    made = LibraryObject(_LOC, {}, call.place)
    if place is not None:
        made.fields[_SHUFFLED] = place
    return made


@method(_LOC, "__getitem__")
def labeled(call: Call) -> Value:
    index = call.value(0)
    first = index.items[0] if isinstance(index, TupleValue) and index.items else index
    _note_label(call, first)
    return Unknown()


@method(_LOC, "__setitem__")
def write_labeled(call: Call) -> Value:
    return NONE


def _note_label(call: Call, index: Value | None) -> None:
    """Report the position of a sample as the label of a row, after the rows were shuffled."""
    place = shuffled_at(call.receiver)
    is_position = isinstance(index, Integer) and isinstance(index.size.only_symbol, SampleIndex)
    if place is not None and is_position:
        call.ev.emit(TableMisused(call.place, call.ev.calls, TableMisuse.LABEL, call.name, place))


@function("pandas.get_dummies")
def dummies(call: Call) -> Value:
    """Table of booleans for the texts of a column, or of all columns of a table."""
    given, keywords = call.value(0, "data"), call.arguments.keywords
    columns = columns_of(given)
    is_whole = columns is not None and all(texts_of(column) is not None for column in columns.values())
    is_texts = is_whole or texts_of(given) is not None
    if (
        call.arguments.open
        or "dtype" in keywords
        or not is_texts
        or not is_at_least(call.ev, "2.0", "pandas")
    ):
        return Unknown()
    made = LibraryObject(FRAME, {}, call.place)
    made.fields[_OF_ONE_DTYPE] = "bool"
    return made


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
    place = shuffled_at(call.receiver) if call.name.endswith("copy") else None
    if held is None or not plain or "inplace" in call.arguments.keywords:
        return Unknown()
    made = series_of(with_numbers_of(call, held, held.layout, held.dtype))
    return with_labels_of(call, made, place)


@method(SERIES, "@values")
def values_of_column(call: Call) -> Value:
    held, texts = as_array(call.receiver), texts_of(call.receiver)
    if held is None:
        return Unknown()
    made = with_numbers_of(call, held, held.layout, held.dtype)
    if texts is not None and isinstance(made, LibraryObject):
        made.fields[_TEXTS] = texts
    return made


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
    _note_label(call, call.value(0))
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
    """Table of arbitrary rows, as many as stated, in any order."""
    columns = columns_of(table)
    if columns is None:
        return with_labels_of(call, LibraryObject(FRAME, {}, call.place), call.place)
    kept = {}
    for name, column in columns.items():
        held = as_array(column)
        kept[name] = _column(call, rows, None if held is None else held.dtype, part_of(range_of(held)))
        if texts_of(column) is not None:
            kept[name].fields[_TEXTS] = name
    return with_labels_of(call, _table(call, kept, rows), call.place)


def note_table(call: Call, data: Value | None) -> None:
    """Report a table, a column, or an array of texts as the data of a tensor, if torch rejects it."""
    if not isinstance(data, LibraryObject) or call.arguments.open:
        return
    is_shared = call.name == "torch.from_numpy"
    if data.kind == FRAME:
        reason = TableMisuse.TABLE
    elif data.kind == SERIES and is_shared:
        reason = TableMisuse.COLUMN
    elif texts_of(data) is not None:
        reason = TableMisuse.TEXTS
    else:
        return
    call.ev.emit(TableMisused(call.place, call.ev.calls, reason, call.name, data.place, texts_of(data) or ""))
