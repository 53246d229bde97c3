"""Methods for the columns of a dataset: names, selection, renaming, casts."""

from __future__ import annotations

from collections.abc import Mapping

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import Constant, Integer, LibraryObject, Unknown, Value
from shapefix.library.data.datasets.cells import Lengths, row
from shapefix.library.data.datasets.objects import (
    DATASET,
    Chosen,
    any_rows,
    as_dataset,
    chosen,
    dataset_method,
    format_of,
    names_of,
    receiver,
    rows_of,
    with_rows,
)
from shapefix.library.registry import declare, method
from shapefix.library.signatures import arguments_under
from shapefix.tensors.polynomials import Size

FEATURES = "datasets.Features"
declare(FEATURES, "builtins.dict")


@dataset_method("@column_names")
def column_names(call: Call) -> Value:
    return ListValue.of(names_of(receiver(call)).contents)


@dataset_method("@features")
def features(call: Call) -> Value:
    return LibraryObject(FEATURES, {}, call.place, {"dataset": receiver(call)})


@method(FEATURES, "__iter__", "keys")
def feature_names(call: Call) -> Value:
    owner = call.receiver
    dataset = as_dataset(owner.fields.get("dataset")) if isinstance(owner, LibraryObject) else None
    return ListValue.of(names_of(dataset).contents) if dataset is not None else ListValue(None)


@method(FEATURES, "__getitem__", "items", "values", "copy", "get", "pop")
def feature(call: Call) -> Value:
    return Unknown()


@dataset_method("remove_columns")
def remove_columns(call: Call) -> Value:
    names = arguments_under(call, f"{DATASET}.remove_columns").value("column_names")
    return without(call, receiver(call), chosen(names, receiver(call)))


def without(call: Call, dataset: LibraryObject, names: Chosen | None) -> LibraryObject:
    """Remove columns from the dataset; unknown columns make the rest unknown."""
    rows = rows_of(dataset)
    if names is None:
        return with_rows(dataset, call.place, any_rows())
    kept = {name: value for name, value in rows.fields.items() if name not in names}
    written = {name: place for name, place in rows.written.items() if name in kept}
    closed = rows.closed or names.everything
    format = format_of(dataset).without(names.names)
    return with_rows(
        dataset, call.place, DictValue(kept, closed, absent=rows.absent, written=written), format
    )


@dataset_method("select_columns")
def select_columns(call: Call) -> Value:
    dataset, rows = receiver(call), rows_of(receiver(call))
    names = chosen(arguments_under(call, f"{DATASET}.select_columns").value("column_names"), dataset)
    if names is None or names.everything:
        return dataset if names is not None else with_rows(dataset, call.place, any_rows())
    kept = {name: rows.read(name) for name in sorted(names.names)}
    written = {name: place for name, place in rows.written.items() if name in kept}
    changed = DictValue(kept, absent=rows.absent, written=written)
    return with_rows(dataset, call.place, changed, format_of(dataset).only(names.names))


@dataset_method("rename_column")
def rename_column(call: Call) -> Value:
    given = arguments_under(call, f"{DATASET}.rename_column")
    old, new = given.value("original_column_name"), given.value("new_column_name")
    if isinstance(old, Constant) and isinstance(new, Constant):
        return _renamed(call, {str(old.value): str(new.value)})
    return with_rows(receiver(call), call.place, any_rows())


@dataset_method("rename_columns")
def rename_columns(call: Call) -> Value:
    given = arguments_under(call, f"{DATASET}.rename_columns").value("column_mapping")
    if isinstance(given, DictValue) and given.closed:
        new = {str(old): name.value for old, name in given.fields.items() if isinstance(name, Constant)}
        if len(new) == len(given.fields):
            return _renamed(call, new)
    return with_rows(receiver(call), call.place, any_rows())


def _renamed(call: Call, names: Mapping[str, str]) -> LibraryObject:
    dataset, rows = receiver(call), rows_of(receiver(call))
    fields: dict[object, Value] = {}
    written = {name: place for name, place in rows.written.items() if name not in names}
    for name, value in rows.fields.items():
        fields[names.get(str(name), name)] = value
    for old, new in names.items():
        fields.setdefault(new, rows.read(old))
        written[new] = call.place
    format = format_of(dataset).renamed(names)
    changed = DictValue(fields, rows.closed, absent=rows.absent, written=written)
    return with_rows(dataset, call.place, changed, format)


@dataset_method("add_column")
def add_column(call: Call) -> Value:
    rows = rows_of(receiver(call))
    given = arguments_under(call, f"{DATASET}.add_column")
    name = given.value("name")
    if not isinstance(name, Constant):
        return with_rows(receiver(call), call.place, any_rows())
    cell = row(given.value("column"), Lengths(call.place, "given with different lengths"))
    return _replaced(call, {name.value: cell}, {**rows.written, name.value: call.place})


@dataset_method("class_encode_column")
def class_encode_column(call: Call) -> Value:
    name = arguments_under(call, f"{DATASET}.class_encode_column").value("column")
    if not isinstance(name, Constant):
        return with_rows(receiver(call), call.place, any_rows())
    return _replaced(call, {name.value: Integer(Size.symbol(str(name.value), least=0))})


@dataset_method("cast_column")
def cast_column(call: Call) -> Value:
    name = arguments_under(call, f"{DATASET}.cast_column").value("column")
    if not isinstance(name, Constant):
        return with_rows(receiver(call), call.place, any_rows())
    return _replaced(call, {name.value: _of_another_type(rows_of(receiver(call)).read(name.value))})


@dataset_method("cast")
def cast(call: Call) -> Value:
    fields = rows_of(receiver(call)).fields
    return _replaced(call, {name: _of_another_type(cell) for name, cell in fields.items()})


def _of_another_type(cell: Value) -> Value:
    """Cast a cell: lists keep their lengths but get other elements."""
    if isinstance(cell, ListValue) and cell.length is not None:
        inner = cell.element if cell.items is None else cell.items[0] if cell.items else None
        element = _of_another_type(inner) if inner is not None else None
        return ListValue(None, element, cell.length, cell.axes)
    return Unknown()


def _replaced(
    call: Call, fields: Mapping[object, Value], written: Mapping[object, Place] | None = None
) -> Value:
    rows = rows_of(receiver(call))
    places = rows.written if written is None else written
    changed = DictValue({**rows.fields, **fields}, rows.closed, absent=rows.absent, written=places)
    return with_rows(receiver(call), call.place, changed)


@dataset_method("flatten")
def flatten(call: Call) -> Value:
    """Turn the keys of dictionary columns into columns: `answers.text`."""
    rows = rows_of(receiver(call))
    fields: dict[object, Value] = {}
    for name, cell in rows.fields.items():
        _flatten(str(name), cell, fields)
    changed = DictValue(fields, rows.closed, absent=rows.absent, written=rows.written)
    return with_rows(receiver(call), call.place, changed)


def _flatten(name: str, cell: Value, fields: dict[object, Value]) -> None:
    if not isinstance(cell, DictValue):
        fields[name] = cell
        return
    for key, inner in cell.fields.items():
        _flatten(f"{name}.{key}", inner, fields)
