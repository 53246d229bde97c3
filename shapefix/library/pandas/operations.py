"""Functions of pandas and methods of its tables."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue, elements
from shapefix.interpreter.values import NONE, Constant, LibraryObject, Slice, Unknown, Value, integer
from shapefix.library.numpy_arrays import as_array, new_array, numpy_dtype, with_range
from shapefix.library.numpy_operations import promoted
from shapefix.library.ops.value_range import range_of
from shapefix.library.pandas.csv_texts import columns_in
from shapefix.library.pandas.tables import (
    FRAME,
    MIXED,
    SHUFFLED,
    TEXTS,
    Columns,
    column_of,
    column_of_list,
    columns_of,
    forget_columns,
    in_asked_dtype,
    known_items,
    leaves_out_rows,
    part_of_rows,
    rows_of,
    shuffled_at,
    some_rows,
    store,
    table_of,
    texts_of,
    with_labels_of,
)
from shapefix.library.registry import function, method
from shapefix.library.required_versions import is_at_least
from shapefix.tensors.layout import unknown_strides
from shapefix.tensors.polynomials import Size

_OF_ONE_DTYPE = "<dtype>"
"""Field of a table of unknown columns with one dtype."""


@function("pandas.read_csv", "pandas.read_excel", "pandas.read_parquet", "pandas.read_json")
def read_file(call: Call) -> Value:
    """Table of unknown columns, or of those in a text of the code."""
    given = call.arguments.keywords.keys() & {
        "chunksize",
        "iterator",
        "sheet_name",
        "typ",
        "lines",
        "squeeze",
    }
    if given or call.arguments.open:
        return Unknown()
    columns = columns_in(call, call.value(0, "filepath_or_buffer")) if call.name.endswith("csv") else None
    return (
        LibraryObject(FRAME, {}, call.place)
        if columns is None
        else _of_columns(call, DictValue(dict(columns)))
    )


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
    return table_of(call, {text: column_of(call, rows, held.dtype, known) for text in texts}, rows)


def _of_columns(call: Call, data: DictValue) -> Value:
    columns: dict[str, LibraryObject] = {}
    lengths: list[Size] = []
    for name, value in data.fields.items():
        held, items = as_array(value), elements(value)
        if not isinstance(name, str):
            return Unknown()
        if held is not None and held.layout is not None and held.layout.rank == 1:
            length = held.layout.sizes[0]
            columns[name] = column_of(call, length, held.dtype, range_of(held))
        elif items:
            length = Size.of(len(items))
            columns[name] = column_of_list(call, length, value, name)
        elif isinstance(value, ListValue) and value.length is not None:
            length = value.length
            columns[name] = column_of_list(call, length, value, name)
        else:
            return Unknown()
        lengths.append(length)
    return table_of(call, columns, lengths[0]) if len(set(lengths)) == 1 else Unknown()


@method(FRAME, "__getitem__")
def read(call: Call) -> Value:
    """Column of a name, or a table of some of the columns, or of some of the rows."""
    columns, key = columns_of(call.receiver), call.value(0)
    place = shuffled_at(call.receiver)
    if isinstance(call.receiver, LibraryObject) and leaves_out_rows(call, key):
        return part_of_rows(call, call.receiver)
    if columns is None or not isinstance(call.receiver, LibraryObject):
        is_name = isinstance(key, Constant) and isinstance(key.value, str)
        if not is_name or not isinstance(call.receiver, LibraryObject):
            return with_labels_of(call, Unknown(), place)
        # A column of a file: only the number of its rows is known.
        return with_labels_of(call, column_of(call, rows_of(call.receiver), None, None), place)
    if isinstance(key, Constant) and isinstance(key.value, str):
        return columns.get(key.value) or Unknown()
    names = [n.value for n in elements(key) or () if isinstance(n, Constant)]
    if names and all(name in columns for name in names):
        chosen = {name: columns[name] for name in names}
        return with_labels_of(call, table_of(call, chosen, rows_of(call.receiver)), place)
    if elements(key) is not None or (isinstance(key, ListValue) and as_array(key) is None):
        return Unknown()
    return some_rows(call, columns) if as_array(key) is not None or isinstance(key, Slice) else Unknown()


@method(FRAME, "__setitem__")
def write(call: Call) -> Value:
    table, key, value = call.receiver, call.value(0), call.value(1)
    columns = columns_of(table)
    if not isinstance(table, LibraryObject):
        return NONE
    if columns is None or not isinstance(key, Constant) or not isinstance(key.value, str):
        forget_columns(call, table)
        return NONE
    held, rows = as_array(value), rows_of(table)
    plain = held is not None and held.layout is not None and held.layout.rank == 1
    dtype, known = (held.dtype, range_of(held)) if plain and held is not None else (None, None)
    is_list = isinstance(value, (ListValue, TupleValue))
    if value is not None and is_list:
        column = column_of_list(call, rows, value, key.value)
    else:
        column = column_of(call, rows, dtype, known)
    if texts_of(value) is not None:
        column.fields[TEXTS] = key.value
    if (place := shuffled_at(table)) is not None:
        column.fields[SHUFFLED] = place
    store(call, table, {**columns, key.value: column}, rows)
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
        dtype = None if "bool" in (dtype, kind) else promoted(dtype, kind)
    if kinds and any(each is None or each.dtype is None for each in held):
        dtype = None
    # The columns of one dtype lie side by side in memory.
    made = new_array(call, unknown_strides((rows_of(table), Size.of(len(columns)))), dtype)
    if isinstance(made, LibraryObject) and all(each is not None and each.dtype for each in held):
        if len({each.dtype == "bool" for each in held if each is not None}) == 2:
            # Booleans beside numbers make an array of objects.
            made.fields[MIXED] = True
    known = [range_of(each) for each in held]
    texts = [name for column in columns.values() if (name := texts_of(column)) is not None]
    if texts and isinstance(made, LibraryObject):
        made.fields[TEXTS] = texts[0]
    return with_range(made, known[0]) if len(known) == 1 else made


@method(FRAME, "to_numpy")
def to_numpy(call: Call) -> Value:
    return in_asked_dtype(call, values(call))


@method(FRAME, "astype")
def converted(call: Call) -> Value:
    columns, table = columns_of(call.receiver), call.receiver
    dtype = numpy_dtype(call.value(0, "dtype"))
    if columns is None or not isinstance(table, LibraryObject) or dtype is None:
        return Unknown()
    held = {name: as_array(column) for name, column in columns.items()}
    rows = rows_of(table)
    known = {name: None if array is None else range_of(array) for name, array in held.items()}
    return table_of(call, {name: column_of(call, rows, dtype, known[name]) for name in columns}, rows)


@method(FRAME, "drop")
def without(call: Call) -> Value:
    """Table without some columns."""
    keywords, table = call.arguments.keywords, call.receiver
    if "inplace" in keywords or call.arguments.open:
        forget_columns(call, table)
        return Unknown()
    columns, labels = columns_of(table), keywords.get("columns")
    axis = call.value(1, "axis")
    if labels is None and isinstance(axis, Constant) and axis.value in (1, "columns"):
        labels = call.value(0, "labels")
    if "axis" not in keywords and axis is None and labels is None and isinstance(table, LibraryObject):
        return part_of_rows(call, table)
    given = (labels,) if isinstance(labels, Constant) else elements(labels) or ()
    names = {name.value for name in given if isinstance(name, Constant)}
    if columns is None or not names or len(names) != len(given) or not isinstance(table, LibraryObject):
        return Unknown()
    left = {n: c for n, c in columns.items() if n not in names}
    return with_labels_of(call, table_of(call, left, rows_of(table)), shuffled_at(table))


@method(FRAME, "copy", "reset_index", "head", "tail", "sample")
def same_columns(call: Call) -> Value:
    """Table of the same columns, and of all or some of the rows."""
    columns, table, name = columns_of(call.receiver), call.receiver, call.name.rpartition(".")[2]
    if "inplace" in call.arguments.keywords:
        forget_columns(call, table)
        return NONE if call.constant(-1, "inplace") is True else Unknown()
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
        return with_labels_of(call, table_of(call, columns, rows_of(table)), place)
    return with_labels_of(call, some_rows(call, columns), place)


@method(FRAME, "query")
def queried(call: Call) -> Value:
    """Rows of a condition, with their labels."""
    if "inplace" in call.arguments.keywords or not isinstance(call.receiver, LibraryObject):
        forget_columns(call, call.receiver)
        return Unknown()
    return part_of_rows(call, call.receiver)


def _leaves_out_rows(call: Call) -> bool:
    """Check for a sample of fewer rows with their labels."""
    keywords, part = call.arguments.keywords, call.constant(1, "frac")
    if call.arguments.open or keywords.keys() & {"ignore_index", "replace", "axis"}:
        return False
    return isinstance(part, float) and part < 1


@method(FRAME, "sort_values", "dropna", "drop_duplicates", "fillna")
def cleaned(call: Call) -> Value:
    """Table with its rows in another order, or without some of them or their missing values."""
    columns, table, keywords = columns_of(call.receiver), call.receiver, call.arguments.keywords
    is_plain = not {"inplace", "axis"} & keywords.keys() and len(call.arguments.positional) <= 1
    if not is_plain or call.arguments.open:
        return perhaps_written(call)
    if columns is None or not isinstance(table, LibraryObject):
        return Unknown()
    made = some_rows(call, columns)
    if call.name.endswith(("sort_values", "fillna")) and isinstance(made, LibraryObject):
        held = {name: as_array(column) for name, column in columns.items()}
        rows = rows_of(table)
        kept = {n: column_of(call, rows, None if a is None else a.dtype, None) for n, a in held.items()}
        made = table_of(call, kept, rows)
    _keep_texts(made, columns)
    return with_labels_of(call, made, shuffled_at(table))


def _keep_texts(table: Value, columns: Columns) -> None:
    """Mark the columns of texts of a new table."""
    for name, column in (columns_of(table) or {}).items():
        if texts_of(columns[name]) is not None:
            column.fields[TEXTS] = name


@method(FRAME, "pop")
def taken_out(call: Call) -> Value:
    """Column removed from its table."""
    columns, table, name = columns_of(call.receiver), call.receiver, call.value(0, "item")
    if columns is None or not isinstance(table, LibraryObject) or not isinstance(name, Constant):
        return perhaps_written(call)
    if name.value not in columns:
        return perhaps_written(call)
    call.ev.journal.write(table.fields, str(name.value), Unknown())
    store(call, table, {n: c for n, c in columns.items() if n != name.value}, rows_of(table))
    return columns[str(name.value)]


@method(
    FRAME,
    *("insert", "update", "rename", "replace"),
    *("set_index", "eval", "interpolate", "ffill", "bfill", "clip", "where", "mask", "@at"),
    *("@iat", "apply", "pipe", "assign", "transform"),
)
def perhaps_written(call: Call) -> Value:
    """Forget a table after a possible change."""
    forget_columns(call, call.receiver)
    return Unknown()


@function("pandas.get_dummies")
def dummies(call: Call) -> Value:
    """Table of booleans for the texts of a column, or of all columns of a table."""
    given, keywords = call.value(0, "data"), call.arguments.keywords
    columns = columns_of(given)
    if columns is not None and isinstance(given, LibraryObject):
        made = _with_dummies(call, given, columns)
        if made is not None:
            return made
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


def _with_dummies(call: Call, table: LibraryObject, columns: Columns) -> Value | None:
    """Table with a column for each value of the columns of texts; None if the values are not known."""
    keywords = call.arguments.keywords
    if call.arguments.open or keywords.keys() - {"data", "columns", "dtype"}:
        return None
    if len(call.arguments.positional) > 1 or not is_at_least(call.ev, "2.0", "pandas"):
        return None
    dtype = numpy_dtype(keywords["dtype"]) if "dtype" in keywords else "bool"
    texts = [name for name, column in columns.items() if texts_of(column) is not None]
    named = keywords.get("columns")
    wanted = [n.value for n in elements(named) or () if isinstance(n, Constant)] if named else texts
    others = [c for n, c in columns.items() if n not in wanted]
    if not wanted or dtype is None or any((a := as_array(c)) is None or a.dtype is None for c in others):
        return None
    rows, made = rows_of(table), {name: c for name, c in columns.items() if name not in wanted}
    for name in wanted:
        items = known_items(columns.get(name)) if isinstance(name, str) else None
        if items is None or any(item.value is None or item.value != item.value for item in items):
            return None
        for value in sorted({str(item.value) for item in items}):
            made[f"{name}_{value}"] = column_of(call, rows, dtype, None)
    return table_of(call, made, rows)


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
