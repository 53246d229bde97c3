"""Operations on a column of a table."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject, Unknown, Value
from shapefix.library.numpy_arrays import ARRAY, SERIES, as_array, new_array, series_of, with_numbers_of
from shapefix.library.ops.nested_lists import leaf_dtype
from shapefix.library.ops.value_range import listed, part_of, range_of
from shapefix.library.pandas.rows import is_one_row, note_label, number_of
from shapefix.library.pandas.tables import (
    TEXTS,
    column_of,
    forget_columns,
    in_asked_dtype,
    known_items,
    shuffled_at,
    texts_of,
    with_labels_of,
)
from shapefix.library.registry import METHODS, Handler, function, method
from shapefix.tensors.polynomials import Size


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
    if "inplace" in call.arguments.keywords:
        forget_columns(call, call.receiver)
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
        made.fields[TEXTS] = texts
    return made


@method(SERIES, "to_numpy")
def column_to_numpy(call: Call) -> Value:
    return in_asked_dtype(call, values_of_column(call))


@method(SERIES, "tolist", "to_list")
def column_to_list(call: Call) -> Value:
    held, items = as_array(call.receiver), known_items(call.receiver)
    if items is not None:
        return ListValue(items)
    length_ = held.layout.sizes[0] if held is not None and held.layout is not None else None
    return ListValue(None, Unknown() if held is None else number_of(call, held), length_)


@method(SERIES, "value_counts")
def counts(call: Call) -> Value:
    """Number of rows with each value, by the values."""
    share = call.constant(0, "normalize", False)
    if share is None or call.arguments.open:
        return Unknown()
    return column_of(call, Size.symbol("values"), "float64" if share else "int64", None)


@method(SERIES, "sort_index", "sort_values", "head", "tail", "sample")
def some_values(call: Call) -> Value:
    """Values of a column in another order, or some of them."""
    held = as_array(call.receiver)
    if held is None or "inplace" in call.arguments.keywords:
        forget_columns(call, call.receiver)
        return Unknown()
    is_whole = "sort" in call.name and held.layout is not None
    rows = held.layout.sizes[0] if is_whole and held.layout is not None else Size.symbol("rows", least=0)
    made = column_of(call, rows, held.dtype, part_of(range_of(held)))
    return with_labels_of(call, made, call.place)


@method(SERIES, "__getitem__")
def of_column(call: Call) -> Value:
    held = as_array(call.receiver)
    note_label(call, call.value(0))
    return number_of(call, held) if held is not None and is_one_row(call.value(0)) else Unknown()


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
    return column_of(call, sizes[0], "int64", part_of(listed(TensorValue(), numbers).extremes))


@method(SERIES, "factorize")
@function("pandas.factorize")
def factorized(call: Call) -> Value:
    """Numbers for the different values of a column, and these values."""
    held = as_array(call.receiver if call.receiver is not None else call.value(0, "values"))
    if held is None or held.layout is None or call.arguments.open:
        return Unknown()
    return TupleValue((new_array(call, held.layout, "int64"), Unknown()))
