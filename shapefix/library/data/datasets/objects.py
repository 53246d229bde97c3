"""Datasets as values: their rows, the names of their columns, the format of rows on reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shapefix.domains.raggedness import Column
from shapefix.domains.row_counts import unknown_count
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue, elements
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import TRUE, Constant, LibraryObject, Text, Unknown, Value, present
from shapefix.library.data.datasets.formats import PLAIN, Format, formatted, unknown_column
from shapefix.library.registry import Handler, declare, method
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.polynomials import Size

DATASET, ITERABLE = "datasets.Dataset", "datasets.IterableDataset"
DICT, ITERABLE_DICT = "datasets.DatasetDict", "datasets.IterableDatasetDict"
declare(DATASET, "builtins.object")
declare(ITERABLE, "builtins.object")
declare(DICT, "builtins.dict")
declare(ITERABLE_DICT, DICT)

ROWS, NAMES, FORMAT, SAMPLE, NUM_ROWS = "rows", "names", "format", "sample", "num_rows"
"""The fields of a dataset: a DictValue, a ListValue, a Format, a DictValue, a Value."""
SHUFFLED = "shuffled"
"""Field of a dataset whose rows are no longer in the order in which `map` passed them."""
OR_SPLITS = "or splits"
"""Field of an object that may be one dataset or a dictionary of several like it, by what is known so far."""


class ColumnName(Text):
    """Name of any one column of a dataset with partly unknown columns."""

    __slots__ = ()


LOADED = ListValue(None, ColumnName(), Size.symbol("columns"))
"""The names of the columns of any dataset that is loaded: two may be equal."""


@dataclass(frozen=True)
class Chosen:
    """Columns selected by an argument; everything means all columns of the dataset."""

    names: frozenset[str] = frozenset()
    everything: bool = False

    def __contains__(self, name: object) -> bool:
        return self.everything or name in self.names


class Remembered:
    """Values of keys not known to exist: created when first read, the same each time."""

    __slots__ = ("_found", "_make")

    def __init__(self, make: Callable[[object], Value]) -> None:
        self._make = make
        self._found: dict[object, Value] = {}

    def __call__(self, key: object) -> Value:
        if key not in self._found:
            self._found[key] = self._make(key)
        return self._found[key]

    def has(self, key: object) -> bool:
        """Check whether a key has been read."""
        return key in self._found

    @property
    def known(self) -> tuple[Value, ...]:
        """Values read so far."""
        return tuple(self._found.values())


def any_rows() -> DictValue:
    """Row without known facts."""
    return DictValue({}, closed=False, absent=unknown_column)


def make(
    kind: str,
    place: Place | None,
    rows: DictValue,
    *,
    names: ListValue | None = None,
    format: Format = PLAIN,
    num_rows: Value | None = None,
) -> LibraryObject:
    """Create a dataset with such rows; names is the list of column names shared with another dataset."""
    if any(not isinstance(origin, Column) for origin in rows.written.values()):
        rows = DictValue(rows.fields, rows.closed, rows.kind, rows.absent, stepped(rows.written, None))
    if names is not None:
        names = ListValue.of(names.contents)
    else:
        known = tuple(Constant(name) for name in rows.fields)
        some = ListValue(None, ColumnName(), Size.symbol("columns"))
        names = ListValue(known) if rows.closed else some
    fields: dict[str, object] = {
        ROWS: rows,
        NAMES: names,
        FORMAT: format,
        SAMPLE: formatted(rows, format),
        NUM_ROWS: num_rows or unknown_count(),
    }
    return LibraryObject(kind, {}, place, fields)


def dataset_method(*names: str) -> Callable[[Handler], Handler]:
    """Register methods, or @properties, of both kinds of dataset."""

    def register(handler: Handler) -> Handler:
        return method(ITERABLE, *names)(method(DATASET, *names)(handler))

    return register


def receiver(call: Call) -> LibraryObject:
    """Dataset of the called method; an arbitrary one for an object of a derived class."""
    return as_dataset(call.receiver) or make(DATASET, call.place, any_rows())


def as_dataset(value: Value | None) -> LibraryObject | None:
    """Return the value if it is a dataset created in this package."""
    value = None if value is None else present(value)
    return value if isinstance(value, LibraryObject) and value.kind in (DATASET, ITERABLE) else None


def any_dataset(place: Place | None = None) -> LibraryObject:
    """Create a dataset of any rows and columns."""
    return make(DATASET, place, any_rows(), names=LOADED)


def one_or_splits(place: Place | None = None) -> LibraryObject:
    """Create a dataset of any rows, or a dictionary of such splits."""
    dataset = any_dataset(place)
    dataset.fields[OR_SPLITS] = TRUE
    return dataset


def is_split_name(dataset: LibraryObject, key: str) -> bool:
    """Check whether key names a split of one or several datasets, as no known column has the name."""
    return OR_SPLITS in dataset.fields and key not in rows_of(dataset).fields


def split_of(dataset: LibraryObject) -> LibraryObject:
    """One split of one or several datasets."""
    found = another(dataset)
    found.fields.pop(OR_SPLITS, None)
    return found


def rows_of(dataset: LibraryObject) -> DictValue:
    """One row of the dataset, with all its columns."""
    rows = dataset.fields.get(ROWS)
    return rows if isinstance(rows, DictValue) else any_rows()


def names_of(dataset: LibraryObject) -> ListValue:
    """Names of the columns."""
    names = dataset.fields.get(NAMES)
    return names if isinstance(names, ListValue) else ListValue(None, ColumnName())


def format_of(dataset: LibraryObject) -> Format:
    """Format of rows on reading."""
    found = dataset.fields.get(FORMAT)
    return found if isinstance(found, Format) else Format(None)


def sample_of(dataset: LibraryObject) -> DictValue:
    """One row as read from the dataset."""
    sample = dataset.fields.get(SAMPLE)
    return sample if isinstance(sample, DictValue) else any_rows()


def number_of(dataset: LibraryObject) -> Value:
    """Number of rows."""
    number = dataset.fields.get(NUM_ROWS)
    return number if isinstance(number, Value) else Unknown(NUM_ROWS)


def shuffled(dataset: LibraryObject) -> LibraryObject:
    """Create a dataset with the same rows in another order."""
    found = another(dataset, same_number=True)
    found.fields[SHUFFLED] = TRUE
    return found


def another(dataset: LibraryObject, *, same_number: bool = False) -> LibraryObject:
    """Create a dataset with the same columns."""
    fields = dict(dataset.fields)
    if not same_number:
        fields[NUM_ROWS] = unknown_count()
    return LibraryObject(dataset.kind, {}, dataset.place, fields)


def with_rows(
    dataset: LibraryObject,
    place: Place,
    rows: DictValue,
    format: Format | None = None,
    same_number: bool = True,
) -> LibraryObject:
    """Create a dataset of the same kind with other columns."""
    number = number_of(dataset) if same_number else None
    if rows is not rows_of(dataset):
        rows = DictValue(rows.fields, rows.closed, rows.kind, rows.absent, stepped(rows.written, place))
    made = make(dataset.kind, place, rows, format=format or format_of(dataset), num_rows=number)
    if OR_SPLITS in dataset.fields:
        made.fields[OR_SPLITS] = TRUE
    return made


def stepped(written: Mapping[Any, Place], place: Place | None) -> dict[Any, Place]:
    """Trace of the columns after one more changing call."""
    steps = () if place is None else (place,)
    return {
        key: Column(origin.module, origin.node, (*origin.steps, *steps))
        if isinstance(origin, Column)
        else Column(origin.module, origin.node)
        for key, origin in written.items()
    }


def chosen(value: Value | None, dataset: LibraryObject) -> Chosen | None:
    """Columns selected by an argument, one or a list of them; None if unknown."""
    if value is None or (isinstance(value, Constant) and value.value is None):
        return Chosen()
    if isinstance(value, Constant) and isinstance(value.value, str):
        return Chosen(frozenset({value.value}))
    items = elements(value)
    if items is not None:
        names = [item.value for item in items if isinstance(item, Constant) and isinstance(item.value, str)]
        return Chosen(frozenset(names)) if len(names) == len(items) else None
    own = names_of(dataset)
    if isinstance(value, ListValue) and own.items is None and own.length is not None:
        if value.element is own.element and value.length == own.length:
            return Chosen(everything=True)
    return None
