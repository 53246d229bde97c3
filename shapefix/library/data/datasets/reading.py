"""Reads from a dataset: rows, columns, batches, their formats and numbers."""

from __future__ import annotations

from shapefix.domains.row_counts import (
    MAP_BATCH,
    may_exceed,
    selected,
    taken,
    unknown_count,
    without_map_padding,
)
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, NumberRange, RaggedDim, TupleValue
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import NONE, Constant, Integer, Number, Slice, Text, Unknown, Value, as_size
from shapefix.library.data.datasets.cells import column, columns, fresh, fresh_row, of_any_numbers
from shapefix.library.data.datasets.formats import Format, formatted
from shapefix.library.data.datasets.objects import (
    DATASET,
    FORMAT,
    ITERABLE,
    NUM_ROWS,
    ROWS,
    SAMPLE,
    SHUFFLED,
    another,
    any_rows,
    chosen,
    dataset_method,
    is_split_name,
    number_of,
    receiver,
    rows_of,
    sample_of,
    shuffled,
    split_of,
)
from shapefix.library.registry import method
from shapefix.library.signatures import arguments_under
from shapefix.tensors.polynomials import Size

SPLITS = frozenset({"train", "test", "validation", "valid", "val", "dev", "eval", "unsupervised"})
"""Unlikely names of columns: with unknown columns the dataset may as well be several splits."""


@method(DATASET, "__getitem__")
def item(call: Call) -> Value:
    """Read a row by its number, a column by its name, several rows by a slice or a list."""
    index, sample = call.value(0), sample_of(receiver(call))
    if isinstance(index, (Integer, Number)) or (isinstance(index, Constant) and type(index.value) is int):
        return fresh_row(sample, None)
    if isinstance(index, Constant) and isinstance(index.value, str):
        if is_split_name(receiver(call), index.value):
            return split_of(receiver(call))
        if index.value in SPLITS and not sample.closed and index.value not in sample.fields:
            return Unknown(index.value)
        return _column(call, sample.read(index.value))
    if isinstance(index, Text):
        return _column(call, Unknown())
    if isinstance(index, (Slice, ListValue, TupleValue)):
        return columns(sample, Size.symbol("rows"), RaggedDim())
    return Unknown()


def _column(call: Call, cell: Value) -> Value:
    """Return a whole column; since datasets 4, a slice of it has the format of the dataset."""
    axis = RaggedDim()
    cells = fresh(cell, axis)
    if isinstance(cells, TensorValue):
        return column(cells, None, axis)
    return ListValue(None, cells, as_size(number_of(receiver(call))), frozenset({axis}))


@dataset_method("__iter__")
def rows(call: Call) -> Value:
    """Rows in order."""
    axis = RaggedDim()
    number = as_size(number_of(receiver(call))) if receiver(call).kind == DATASET else None
    return ListValue(None, fresh_row(sample_of(receiver(call)), axis), number, frozenset({axis}))


@dataset_method("iter")
def batches(call: Call) -> Value:
    """Batches in order, each a dictionary of columns."""
    size = arguments_under(call, f"{DATASET}.iter").size("batch_size")
    return ListValue(None, columns(sample_of(receiver(call)), size, RaggedDim()))


@method(DATASET, "to_dict")
def to_dict(call: Call) -> Value:
    return columns(rows_of(receiver(call)), as_size(number_of(receiver(call))), RaggedDim())


@method(DATASET, "to_list")
def to_list(call: Call) -> Value:
    axis = RaggedDim()
    number = as_size(number_of(receiver(call)))
    return ListValue(None, fresh_row(rows_of(receiver(call)), axis), number, frozenset({axis}))


@method(DATASET, "__len__")
def length(call: Call) -> Value:
    return number_of(receiver(call))


@dataset_method("unique")
def unique(call: Call) -> Value:
    name = arguments_under(call, f"{DATASET}.unique").value("column")
    rows = rows_of(receiver(call))
    cell = rows.read(name.value) if isinstance(name, Constant) else Unknown()
    axis = RaggedDim()
    return ListValue(None, fresh(cell, axis), axes=frozenset({axis}))


def _stated_format(call: Call) -> Format:
    """Format requested by `set_format` or `with_format`; that of `reset_format` is the default."""
    given = arguments_under(call, f"{DATASET}.set_format")
    kind, rest = given.value("type"), given.flag("output_all_columns")
    names = chosen(given.value("columns"), receiver(call))
    if not isinstance(kind, Constant) or rest is None or names is None:
        return Format(None)
    every = names.everything or (isinstance(given.value("columns"), Constant) and not names.names)
    columns = None if every else names.names
    known = {None: "python", "python": "python", "torch": "torch", "pt": "torch", "pytorch": "torch"}
    return Format(known.get(kind.value), columns, rest)


@dataset_method("set_format", "reset_format")
def set_format(call: Call) -> Value:
    """Change the format of the dataset itself."""
    dataset = receiver(call)
    format = _stated_format(call)
    call.ev.journal.write(dataset.fields, FORMAT, format)
    call.ev.journal.write(dataset.fields, SAMPLE, formatted(rows_of(dataset), format))
    return NONE


REMOVED_IN_PLACE = ("rename_column_", "remove_columns_", "cast_", "flatten_", "dictionary_encode_column_")
"""Methods of datasets 1 for the columns of the dataset itself."""


@dataset_method(*REMOVED_IN_PLACE)
def forget_columns(call: Call) -> Value:
    """Forget the columns: versions with the method have them changed, later ones raise."""
    dataset = receiver(call)
    call.ev.journal.write(dataset.fields, ROWS, any_rows())
    call.ev.journal.write(dataset.fields, SAMPLE, any_rows())
    return NONE


@dataset_method("with_format")
def with_format(call: Call) -> Value:
    dataset = another(receiver(call), same_number=True)
    dataset.fields[FORMAT] = _stated_format(call)
    dataset.fields[SAMPLE] = formatted(rows_of(dataset), dataset.fields[FORMAT])
    return dataset


@dataset_method("shuffle", "sort")
def reordered(call: Call) -> Value:
    return shuffled(receiver(call))


@dataset_method("flatten_indices", "repartition", "with_epoch")
def same_rows(call: Call) -> Value:
    return another(receiver(call), same_number=True)


@dataset_method("select", "take")
def first_rows(call: Call) -> Value:
    """Select rows: a number within one map batch may come from a single one."""
    dataset = receiver(call)
    total = number_of(dataset)
    if call.name.endswith(".take"):
        count = taken(call.value(0, "n"), total)
    else:
        count = selected(call.value(0, "indices"))
    kept = another(dataset)
    kept.fields[NUM_ROWS] = count
    if call.name.endswith(".select") and not isinstance(call.value(0, "indices"), NumberRange):
        # They may have been chosen by their numbers.
        kept.fields[ROWS] = of_any_numbers(rows_of(dataset), None)
        kept.fields[SAMPLE] = of_any_numbers(sample_of(dataset), None)
    if SHUFFLED not in dataset.fields and not may_exceed(count, MAP_BATCH):
        kept.fields[ROWS] = without_map_padding(rows_of(kept))
        kept.fields[SAMPLE] = without_map_padding(sample_of(kept))
    return kept


@dataset_method("shard", "skip")
def fewer(call: Call) -> Value:
    dataset = receiver(call)
    kept = another(dataset)
    kept.fields[NUM_ROWS] = unknown_count(number_of(dataset))
    return kept


@dataset_method("repeat")
def repeated(call: Call) -> Value:
    return another(receiver(call))


@method(DATASET, "to_iterable_dataset")
def to_iterable(call: Call) -> Value:
    dataset = another(receiver(call), same_number=True)
    dataset.kind = ITERABLE
    return dataset


@dataset_method("save_to_disk", "set_epoch", "cleanup_cache_files")
def returns_none(call: Call) -> Value:
    return NONE
