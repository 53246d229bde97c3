"""datasets.DatasetDict: datasets by split name; each method applies to every split."""

from __future__ import annotations

from collections.abc import Callable

from shapefix.domains.row_counts import unknown_count
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, TupleValue
from shapefix.interpreter.dictionaries import Entries, certain_keys, is_complete
from shapefix.interpreter.values import NONE, TEXT, Constant, LibraryObject, Unknown, Value
from shapefix.library.data.datasets.objects import (
    DATASET,
    DICT,
    FORMAT,
    ITERABLE_DICT,
    LOADED,
    NUM_ROWS,
    ROWS,
    Remembered,
    another,
    as_dataset,
    format_of,
    names_of,
    number_of,
    receiver,
    rows_of,
    shuffled,
    split_of,
)
from shapefix.library.data.datasets.reading import REMOVED_IN_PLACE
from shapefix.library.registry import FUNCTIONS, function, lookup_method, method


class Splits(Remembered):
    """Splits of unknown names, all like one dataset."""

    __slots__ = ("pattern",)

    def __init__(self, pattern: LibraryObject) -> None:
        super().__init__(lambda key: another(pattern))
        self.pattern = pattern

    def __eq__(self, other: object) -> bool:
        """Check whether the splits of another dictionary are like these, as far as is known."""
        if not isinstance(other, Splits):
            return False
        one, another_ = self.pattern, other.pattern
        same_rows = rows_of(one) is rows_of(another_) or (_is_loaded(one) and _is_loaded(another_))
        return one.kind == another_.kind and same_rows and format_of(one) == format_of(another_)


def _is_loaded(dataset: LibraryObject) -> bool:
    return names_of(dataset).element is LOADED.element


def like(pattern: LibraryObject, kind: str = DICT) -> DictValue:
    """Create a dictionary of splits of unknown names, all like this dataset."""
    return DictValue({}, closed=False, kind=kind, absent=Splits(pattern))


@function(DICT, ITERABLE_DICT)
def make(call: Call) -> Value:
    """Create splits from a dictionary of datasets, or from keywords."""
    given = call.value(0)
    fields: dict[object, Value] = {}
    fields.update(call.arguments.keywords)
    if isinstance(given, DictValue):
        known = {key: given.fields[key] for key in certain_keys(call.ev, given)}
        closed = is_complete(call.ev, given) and not call.arguments.open
        return DictValue({**known, **fields}, closed, call.name, given.absent, given.written)
    return DictValue(fields, given is None and not call.arguments.open, call.name)


def each_split(call: Call, change: Callable[[LibraryObject], Value], kind: str | None = None) -> DictValue:
    """Apply change to each split; equal splits share the result."""
    owner = call.receiver if isinstance(call.receiver, DictValue) else DictValue({}, False, DICT)
    made: dict[tuple[int, object], Value] = {}

    def changed(value: Value) -> Value:
        split = as_dataset(value)
        if split is None:
            return Unknown()
        rows = split.fields.get(ROWS)
        key = (id(rows), split.fields.get(FORMAT))
        if key not in made:
            made[key] = change(split)
            return made[key]
        like_it = as_dataset(made[key])
        return another(like_it) if like_it is not None else made[key]

    fields = {name: changed(split) for name, split in owner.fields.items()}
    absent: Callable[[object], Value] | None = None
    if isinstance(owner.absent, Splits) and not owner.closed:
        pattern = changed(owner.absent.pattern)
        split = as_dataset(pattern)
        absent = Splits(split) if split is not None else lambda key: pattern
    return DictValue(fields, owner.closed, kind or owner.kind, absent, owner.written)


def _answer(call: Call, split: LibraryObject, name: str) -> Value:
    """Result of a method or property for one split."""
    handler = lookup_method(split.kind, name)
    if handler is None:
        return Unknown()
    return handler(Call(call.ev, f"{split.kind}.{name}", call.place, call.arguments, split))


@method(
    DICT,
    "map",
    "filter",
    "rename_column",
    "rename_columns",
    "remove_columns",
    "select_columns",
    "with_format",
    "with_transform",
    "shuffle",
    "sort",
    "cast",
    "cast_column",
    "class_encode_column",
    "flatten",
    "flatten_indices",
)
def on_each_split(call: Call) -> Value:
    name = call.name.rpartition(".")[2]
    return each_split(call, lambda split: _answer(call, split, name))


@method(DICT, "set_format", "reset_format", "set_transform", *REMOVED_IN_PLACE)
def in_place(call: Call) -> Value:
    """Change every split in place, including splits already read by the code."""
    name = call.name.rpartition(".")[2]
    owner = call.receiver
    splits = list(owner.fields.values()) if isinstance(owner, DictValue) else []
    if isinstance(owner, DictValue) and isinstance(owner.absent, Splits):
        splits += [owner.absent.pattern, *owner.absent.known]
    for split in map(as_dataset, splits):
        if split is not None:
            _answer(call, split, name)
    return NONE


@method(DICT, "unique", "@column_names", "@num_rows", "@num_columns")
def for_each_split(call: Call) -> Value:
    """Dictionary with the result for each split."""
    name = call.name.rpartition(".")[2]
    if name == "num_rows":
        return each_split(call, number_of, "builtins.dict")
    method_name = name if name == "unique" else f"@{name}"
    return each_split(call, lambda split: _answer(call, split, method_name), "builtins.dict")


@method(DICT, "values", "items")
def values(call: Call) -> Value:
    """Known splits, and one like them if there may be others."""
    owner = call.receiver
    name = call.name.rpartition(".")[2]
    if (
        not isinstance(owner, DictValue)
        or not isinstance(owner.absent, Splits)
        or is_complete(call.ev, owner)
    ):
        return FUNCTIONS[f"builtins.dict.{name}"](call)
    pattern = another(owner.absent.pattern)
    keys = certain_keys(call.ev, owner)
    if name == "values":
        return Entries(owner, tuple(owner.fields[key] for key in keys), False, pattern)
    known = tuple(TupleValue((Constant(key), owner.fields[key])) for key in keys)
    return Entries(owner, known, False, TupleValue((TEXT, pattern)))


@method(DATASET, "train_test_split")
def train_test_split(call: Call) -> Value:
    """Two datasets of fewer rows, shuffled unless the code says otherwise."""
    dataset = receiver(call)
    order = call.value(2, "shuffle")
    in_order = isinstance(order, Constant) and order.value is False
    splits: dict[object, Value] = {}
    for name in ("train", "test"):
        split = split_of(dataset if in_order else shuffled(dataset))
        split.fields[NUM_ROWS] = unknown_count(number_of(dataset))
        splits[name] = split
    return DictValue(splits, kind=DICT)
