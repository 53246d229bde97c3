"""Sources of datasets: the hub, files, dictionaries and lists of the program, other datasets."""

from __future__ import annotations

from functools import partial

from shapefix.interpreter.calls import Arguments, Call, call_value
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue, elements
from shapefix.interpreter.iteration import each, iterate
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import TEXT, Constant, LibraryObject, Unknown, Value, as_size, integer
from shapefix.library.data.datasets import hub
from shapefix.library.data.datasets.cells import Lengths, either, row, stored
from shapefix.library.data.datasets.formats import PLAIN, Format
from shapefix.library.data.datasets.objects import (
    DATASET,
    DICT,
    ITERABLE,
    ITERABLE_DICT,
    LOADED,
    any_rows,
    as_dataset,
    format_of,
    make,
    number_of,
    one_or_splits,
    rows_of,
)
from shapefix.library.data.datasets.splits import like
from shapefix.library.registry import function
from shapefix.library.signatures import BoundArguments, arguments_under
from shapefix.tensors.polynomials import Size

_FILES = (
    "from_pandas",
    "from_polars",
    "from_csv",
    "from_json",
    "from_parquet",
    "from_sql",
    "from_file",
    "from_buffer",
)
LITERAL = "given with different lengths"
_PACKAGES = {
    DATASET: ("datasets.Dataset", "datasets.arrow_dataset.Dataset"),
    ITERABLE: ("datasets.IterableDataset", "datasets.iterable_dataset.IterableDataset"),
}


def _named(kind: str, method: str) -> list[str]:
    return [f"{name}.{method}" for name in _PACKAGES[kind]]


def _lines() -> DictValue:
    """Row of a text file."""
    return DictValue({"text": TEXT})


def _loaded(call: Call, given: BoundArguments) -> DictValue:
    """Row of a dataset loaded by `load_dataset` from the hub or from files."""
    path = given.value("path")
    if not isinstance(path, Constant):
        return any_rows()
    if path.value == "text":
        return _lines()
    if not all(given.is_none(name) for name in ("data_files", "data_dir", "features")):
        return any_rows()
    known = hub.rows(str(path.value), given.text("name"), call.place)
    return known if known is not None else any_rows()


@function("datasets.load_dataset", "datasets.load.load_dataset")
def load_dataset(call: Call) -> Value:
    """Load the splits of a dataset, one or several depending on the argument split; any columns."""
    given = arguments_under(call, "datasets.load_dataset")
    split, streaming = given.value("split"), given.flag("streaming")
    rows = _loaded(call, given)
    names = None if rows.closed else LOADED
    one = partial(make, ITERABLE if streaming else DATASET, call.place, rows, names=names)
    if isinstance(split, Constant) and split.value is None:
        return like(one(), ITERABLE_DICT if streaming else DICT)
    if isinstance(split, (ListValue, TupleValue)):
        parts = elements(split)
        return ListValue(None, one()) if parts is None else ListValue(tuple(one() for _ in parts))
    # A split of unknown name is one; see reading.SPLITS for the None that it may be.
    return one()


@function("datasets.load_from_disk", "datasets.load.load_from_disk")
def load_from_disk(call: Call) -> Value:
    return one_or_splits(call.place)


@function(*(name for method in _FILES for name in _named(DATASET, method)))
def from_files(call: Call) -> Value:
    return make(DATASET, call.place, any_rows())


@function(*_named(DATASET, "from_text"))
def from_text(call: Call) -> Value:
    return make(DATASET, call.place, _lines())


@function(*_named(DATASET, "from_dict"))
def from_dict(call: Call) -> Value:
    """Create a dataset from columns by name, each with all its cells."""
    given = arguments_under(call, f"{DATASET}.from_dict").value("mapping")
    if not isinstance(given, DictValue):
        return make(DATASET, call.place, any_rows())
    lengths = Lengths(call.place, LITERAL)
    fields = {name: row(column, lengths) for name, column in given.fields.items()}
    sizes = [column.length for column in given.fields.values() if isinstance(column, ListValue)]
    number = integer(sizes[0]) if sizes and sizes[0] is not None else None
    rows = DictValue(fields, given.closed, absent=any_rows().absent, written=given.written)
    return make(DATASET, call.place, rows, num_rows=number)


@function(*_named(DATASET, "from_list"))
def from_list(call: Call) -> Value:
    """Create a dataset from rows; the first one determines the columns."""
    mapping = arguments_under(call, f"{DATASET}.from_list").value("mapping")
    given = iterate(call.ev, mapping, call.place.node)
    known = elements(given)
    length = given.length if isinstance(given, ListValue) else None
    return make(
        DATASET,
        call.place,
        _like_rows(list(known) if known is not None else [each(call.ev, given)], call.place),
        num_rows=None if length is None else integer(length),
    )


def _like_rows(given: list[Value], place: Place) -> DictValue:
    """Representative of all given rows."""
    rows = [stored(value) for value in given]
    first = rows[0] if rows else None
    if not isinstance(first, DictValue):
        return any_rows()
    lengths = Lengths(place, LITERAL)
    alike = [one for one in rows if isinstance(one, DictValue) and one.fields.keys() == first.fields.keys()]
    if len(alike) < len(rows):
        return any_rows()
    fields = {name: either([one.fields[name] for one in alike], lengths) for name in first.fields}
    closed = all(one.closed for one in alike)
    return DictValue(fields, closed, absent=any_rows().absent, written=first.written)


@function(*_named(DATASET, "from_generator"), *_named(ITERABLE, "from_generator"))
def from_generator(call: Call) -> Value:
    """Create a dataset from the items of a generator function called with gen_kwargs."""
    kind = ITERABLE if "terable" in call.name else DATASET
    given = arguments_under(call, f"{kind}.from_generator")
    settings = given.value("gen_kwargs")
    keywords = settings.fields if isinstance(settings, DictValue) else {}
    is_open = not isinstance(settings, (DictValue, Constant)) or call.arguments.open
    arguments = Arguments([], {str(key): value for key, value in keywords.items()}, is_open)
    yielded = call_value(call.ev, given.value("generator"), arguments, call.place.node)
    rows = each(call.ev, iterate(call.ev, yielded, call.place.node))
    return make(kind, call.place, _like_rows([rows], call.place))


@function(
    "datasets.concatenate_datasets",
    "datasets.combine.concatenate_datasets",
    "datasets.interleave_datasets",
    "datasets.combine.interleave_datasets",
)
def combined(call: Call) -> Value:
    """Combine the rows of several datasets; a missing column is None."""
    name = f"datasets.{call.name.rpartition('.')[2]}"
    # `dsets` for one of the two functions, `datasets` for the other.
    first = next(iter(arguments_under(call, name).values.values()))
    given = iterate(call.ev, first, call.place.node)
    parts = elements(given)
    found = [as_dataset(part) for part in (parts if parts is not None else (each(call.ev, given),))]
    datasets = [dataset for dataset in found if dataset is not None]
    if not datasets or len(datasets) < len(found):
        return make(DATASET, call.place, any_rows())
    formats = {format_of(dataset) for dataset in datasets}
    format = Format(None) if Format(None) in formats else formats.pop() if len(formats) == 1 else PLAIN
    count: Size | None = Size.of(0) if call.name.endswith("concatenate_datasets") else None
    for dataset in datasets if parts is not None else ():
        number = as_size(number_of(dataset))
        count = count + number if count is not None and number is not None else None
    known = integer(count) if count is not None and parts is not None else None
    return make(datasets[0].kind, call.place, _of_any(datasets, call.place), format=format, num_rows=known)


def _of_any(datasets: list[LibraryObject], place: Place) -> DictValue:
    rows = [rows_of(dataset) for dataset in datasets]
    if all(one is rows[0] for one in rows):
        return rows[0]
    lengths = Lengths(place, "of datasets of different lengths")
    names = dict.fromkeys(name for one in rows for name in one.fields)
    fields: dict[object, Value] = {}
    for name in names:
        cells = [one.fields[name] for one in rows if name in one.fields]
        fields[name] = either(cells, lengths) if len(cells) == len(rows) else Unknown(str(name))
    written = {name: where for one in reversed(rows) for name, where in one.written.items()}
    closed = all(one.closed for one in rows)
    return DictValue(fields, closed, absent=any_rows().absent, written=written)
