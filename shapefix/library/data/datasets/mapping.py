"""`map` and similar methods: run the user's function on rows and use its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shapefix.domains.batches import Batches, Mapped
from shapefix.interpreter.calls import Arguments, Call, call_value
from shapefix.interpreter.containers import DictValue, ListValue, RaggedDim, TupleValue, elements
from shapefix.interpreter.dictionaries import certain_keys, is_complete
from shapefix.interpreter.journal import UNCHANGED, Changes
from shapefix.interpreter.tensor_values import TensorValue, tensor_row
from shapefix.interpreter.values import NONE, Constant, Integer, LibraryObject, Unknown, Value
from shapefix.library.data.datasets.cells import Lengths, columns, either, fresh_row, row, stored
from shapefix.library.data.datasets.columns import without
from shapefix.library.data.datasets.formats import CUSTOM, PLAIN, TORCH, Format, formatted
from shapefix.library.data.datasets.objects import (
    DATASET,
    FORMAT,
    ITERABLE,
    SAMPLE,
    Chosen,
    Remembered,
    another,
    any_rows,
    chosen,
    dataset_method,
    format_of,
    number_of,
    receiver,
    rows_of,
    with_rows,
)
from shapefix.library.signatures import BoundArguments, arguments_under
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.layout import contiguous
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import substitute
from shapefix.tensors.symbols import PerItemSize

RETURNED = "returned with different lengths"


@dataclass(frozen=True, eq=False)
class HandedOver:
    """Arguments of a mapped function: the rows as one dictionary, or some of their columns one by one."""

    rows: DictValue
    arguments: Arguments
    one_by_one: bool


def settings(call: Call) -> BoundArguments:
    """Arguments of `map` or `filter` by name."""
    kind = ITERABLE if receiver(call).kind == ITERABLE else DATASET
    return arguments_under(call, f"{kind}.{call.name.rpartition('.')[2]}")


def hand_over(rows: DictValue, given: BoundArguments, batched: bool) -> HandedOver | None:
    """Arguments of the function for rows of this kind; None if unknown."""
    axis, length = RaggedDim(), Size.symbol("examples")
    handed = columns(rows, length, axis) if batched else fresh_row(rows, None)
    arguments: list[Value] = [handed]
    names = given.value("input_columns")
    one_by_one = given.is_none("input_columns") is False
    if one_by_one:
        wanted = elements(names) or (names,)
        keys = [key.value for key in wanted if isinstance(key, Constant)]
        if len(keys) != len(wanted):
            return None
        arguments = [handed.read(key) for key in keys]
    for flag, name in (("with_indices", "index"), ("with_rank", "rank")):
        if flag not in given.values:
            continue
        if given.flag(flag) is None:
            return None
        if given.flag(flag):
            number = Integer(Size.symbol(name, least=0))
            several = batched and name == "index"
            arguments.append(ListValue(None, number, length, frozenset({axis})) if several else number)
    keywords = given.value("fn_kwargs")
    if isinstance(keywords, DictValue):
        named = {str(key): value for key, value in keywords.fields.items()}
        return HandedOver(handed, Arguments(arguments, named, not keywords.closed), one_by_one)
    return HandedOver(handed, Arguments(arguments, {}, given.is_none("fn_kwargs") is not True), one_by_one)


@dataset_method("map")
def map_(call: Call) -> Value:
    dataset, given = receiver(call), settings(call)
    removed = chosen(given.value("remove_columns"), dataset)
    batched = given.flag("batched")
    if given.is_none("function"):
        return without(call, dataset, removed)
    handed = None if batched is None else hand_over(_read_by_functions(dataset), given, batched)
    if handed is None or batched is None:
        return with_rows(dataset, call.place, any_rows(), same_number=False)
    batches = call.ev.state[Batches]
    before, batches.mapping = batches.mapping, (call.place, batched, number_of(dataset))
    returned = run_apart(call, given.value("function"), handed)
    batches.mapping = before
    if isinstance(returned, Constant) and returned.value is None:
        # A function without a result leaves the columns unchanged: none is removed, either.
        return another(dataset, same_number=True)
    rows = any_rows()
    if isinstance(returned, DictValue):
        rows = _merged(call, dataset, handed, returned, removed, batched)
    new = frozenset(str(name) for name in rows.fields.keys() - rows_of(dataset).fields.keys())
    lost = removed.names if removed is not None else frozenset()
    format = format_of(dataset).without(lost).extended(new)
    result = with_rows(dataset, call.place, rows, format, same_number=not batched)
    call.ev.emit(Mapped(call.place, call.ev.calls, returned, rows_of(result)))
    return result


def _read_by_functions(dataset: LibraryObject) -> DictValue:
    """Row as `map` passes it to a function: in the dataset's format, but with all its columns."""
    kind = format_of(dataset).kind
    return formatted(rows_of(dataset), Format(kind)) if kind in (PLAIN.kind, TORCH) else any_rows()


def run_apart(call: Call, function: Value, handed: HandedOver) -> Value:
    """Run the function and return its result; undo its other changes, since it may have run often.

    Its arguments and its result keep the changes that the function made.
    """
    journal = call.ev.journal
    journal.begin()
    returned = call_value(call.ev, function, handed.arguments, call.place.node)
    own: set[int] = set()
    for value in (returned, *handed.arguments.positional, handed.rows):
        _reach(value, own, 0)
    changes = journal.undo()
    inside, outside = Changes(), Changes()
    for location, entry in changes.written.items():
        (inside if location[0] in own else outside).written[location] = entry
    journal.apply([inside])
    journal.apply([UNCHANGED, outside])
    return returned


def _reach(value: Value | None, found: set[int], depth: int) -> None:
    """Add the ids of the containers in value, itself included."""
    if depth > 6 or value is None:
        return
    if isinstance(value, TensorValue):
        found.add(id(value))
        return
    inner: Iterable[Value | None] = ()
    if isinstance(value, TupleValue):
        inner = value.items
    elif isinstance(value, (ListValue, DictValue)) and id(value.fields) not in found:
        found.add(id(value.fields))
        inner = value.fields.values() if isinstance(value, DictValue) else (value.items or (value.element,))
    for item in inner:
        _reach(item, found, depth + 1)


def _merged(
    call: Call,
    dataset: LibraryObject,
    handed: HandedOver,
    returned: DictValue,
    removed: Chosen | None,
    batched: bool,
) -> DictValue:
    """Row of the new dataset: the old columns without the removed ones, and the function's result."""
    ev, lengths = call.ev, Lengths(call.place, RETURNED)
    cell: Callable[[Value], Value] = (lambda value: row(value, lengths)) if batched else stored
    rows = rows_of(dataset)
    before, places = rows.fields, rows.written
    if returned is handed.rows or (format_of(dataset).kind == PLAIN.kind and not handed.one_by_one):
        # Writes of the function into its argument rows also change the dataset.
        before = {key: cell(handed.rows.fields[key]) for key in certain_keys(ev, handed.rows)}
        places = handed.rows.written
    kept = {key: value for key, value in before.items() if not _is_lost(key, removed, rows, handed.rows)}
    complete = removed is not None and (rows.closed or removed.everything) and is_complete(ev, handed.rows)
    if returned is handed.rows:
        fields, written = kept, places
        complete = complete or (removed is not None and removed.everything)
    else:
        certain = certain_keys(ev, returned)
        fields = {key: cell(returned.fields[key]) for key in certain}
        whole = is_complete(ev, returned)
        unsure = {key: Unknown(str(key)) for key in kept}
        fields = {**(kept if whole else unsure), **fields}
        written = {**places, **returned.written}
        complete = (complete or (removed is not None and removed.everything)) and whole
    known = {key: place for key, place in written.items() if key in fields}
    return DictValue(fields, complete, absent=any_rows().absent, written=known)


def _is_lost(key: object, removed: Chosen | None, rows: DictValue, handed: DictValue) -> bool:
    """Check whether `remove_columns` removes an earlier column of the dataset."""
    if removed is None:
        return True
    if key in removed.names:
        return True
    was_read = isinstance(handed.absent, Remembered) and handed.absent.has(key)
    return removed.everything and (key in rows.fields or was_read)


@dataset_method("with_transform")
def with_transform(call: Call) -> Value:
    """Return the function's result for a batch when rows are read; the columns stay unchanged."""
    dataset = another(receiver(call), same_number=True)
    format, sample = _transformed(call, dataset)
    dataset.fields[FORMAT], dataset.fields[SAMPLE] = format, sample
    return dataset


@dataset_method("set_transform")
def set_transform(call: Call) -> Value:
    dataset = receiver(call)
    format, sample = _transformed(call, dataset)
    call.ev.journal.write(dataset.fields, FORMAT, format)
    call.ev.journal.write(dataset.fields, SAMPLE, sample)
    return NONE


def _transformed(call: Call, dataset: LibraryObject) -> tuple[Format, DictValue]:
    given = arguments_under(call, f"{DATASET}.set_transform")
    rows = rows_of(dataset)
    if given.is_none("transform"):
        return PLAIN, rows
    names = chosen(given.value("columns"), dataset)
    if names is not None and names.names:
        rows = formatted(rows, Format(PLAIN.kind, names.names))
    handed = HandedOver(columns(rows, Size.symbol("examples"), RaggedDim()), Arguments(), False)
    handed.arguments.positional.append(handed.rows)
    returned = run_apart(call, given.value("transform"), handed)
    if names is None or not isinstance(returned, DictValue) or given.flag("output_all_columns") is not False:
        return Format(CUSTOM), any_rows()
    lengths = Lengths(call.place, RETURNED)
    certain = certain_keys(call.ev, returned)
    fields = {key: _first(returned.fields[key], lengths) for key in certain}
    closed = is_complete(call.ev, returned)
    return Format(CUSTOM), DictValue(fields, closed, absent=any_rows().absent, written=returned.written)


def _of_one_call(size: Size) -> Size:
    """Size of the rows of one call of a transform: a loader reads a whole batch at once (`__getitems__`)."""
    varying = [each for each in size.symbols if isinstance(each, PerItemSize) and each.axis is None]
    return substitute(size, {each: Size.symbol(each.name) for each in varying}) if varying else size


def _first(column: Value, lengths: Lengths) -> Value:
    """First of the cells of a column, unchanged: nothing is written to Arrow."""
    if isinstance(column, TensorValue):
        if column.layout is None or not column.layout.rank:
            return Unknown()
        sizes = map(_of_one_call, column.layout.sizes[1:])
        return TensorValue(contiguous(list(sizes)), dtype=column.dtype, row=tensor_row(column))
    if isinstance(column, (ListValue, TupleValue)):
        items = elements(column)
        if items is not None:
            return either(items, lengths)
        return column.element or Unknown() if isinstance(column, ListValue) else Unknown()
    return Unknown()
