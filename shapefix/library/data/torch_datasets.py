"""Datasets of torch.utils.data, and any one sample of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from shapefix.domains.raggedness import differs
from shapefix.domains.windows import Windows
from shapefix.interpreter.calls import Arguments, Call, call_method
from shapefix.interpreter.classes import lineage, member, outside_bases
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue, elements
from shapefix.interpreter.iteration import each, iterate
from shapefix.interpreter.joins import join, join_values
from shapefix.interpreter.per_item_sizes import fixed
from shapefix.interpreter.subscripts import item
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    NONE,
    Constant,
    InstanceValue,
    Integer,
    LibraryObject,
    PerhapsNone,
    Slice,
    Unknown,
    Value,
    as_size,
    integer,
    present,
)
from shapefix.library.data.datasets.cells import fresh_row
from shapefix.library.data.default_collation import as_tensors
from shapefix.library.data.samples import length_of, one_of
from shapefix.library.numpy_arrays import as_array
from shapefix.library.registry import declare, derives, function, method
from shapefix.library.signatures import arguments_under
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import SampleIndex

_DATA = "torch.utils.data"
DATASET, ITERABLE = f"{_DATA}.Dataset", f"{_DATA}.IterableDataset"
TENSORS, SUBSET, CONCATENATED = f"{_DATA}.TensorDataset", f"{_DATA}.Subset", f"{_DATA}.ConcatDataset"
_FIRST = 4
"""Number of samples of a dataset that are compared with each other."""

declare(DATASET, "builtins.object")
declare(ITERABLE, DATASET)
declare(f"{_DATA}.dataset.Dataset", DATASET)
for _kind in (TENSORS, SUBSET, CONCATENATED):
    declare(_kind, DATASET)


_BASES = frozenset({DATASET, f"{_DATA}.dataset.Dataset"})


@join_values
def join_datasets(left: Value, right: Value, depth: int = 0) -> Value | None:
    """Join two datasets of one class of the project, or of a class and its base with the same samples."""
    if not isinstance(left, InstanceValue) or not isinstance(right, InstanceValue) or left is right:
        return None
    for base, derived in ((left, right), (right, left)):
        is_derived = any(each is base.cls for each in lineage(derived.cls))
        if not is_derived or _BASES.isdisjoint(outside_bases(base.cls)):
            continue
        if any(
            member(base.cls, name) is not member(derived.cls, name) for name in ("__getitem__", "__len__")
        ):
            return None
        joined = InstanceValue(base.cls, open=base.open or derived.open)
        shared = left.fields.keys() & right.fields.keys()
        joined.fields = {name: join(left.fields[name], right.fields[name]) for name in shared}
        return joined
    return None


@method(DATASET, "__init__")
def returns_none(call: Call) -> Value:
    return NONE


@function(TENSORS)
def tensor_dataset(call: Call) -> Value:
    given = tuple(map(fixed, call.arguments.positional))
    tensors = ListValue(None) if call.arguments.open else TupleValue(given)
    return LibraryObject(TENSORS, {}, call.place, {"tensors": tensors})


@function(SUBSET)
def subset(call: Call) -> Value:
    settings = arguments_under(call, SUBSET).values
    return LibraryObject(SUBSET, settings, call.place, dict(settings))


@function(f"{_DATA}.random_split")
def random_split(call: Call) -> Value:
    """Split the dataset into subsets of the requested lengths or fractions."""
    given = arguments_under(call, f"{_DATA}.random_split")
    parts = elements(given.value("lengths"))
    shared = {"dataset": given.value("dataset"), "indices": Unknown()}
    if parts is None:
        return ListValue(None, LibraryObject(SUBSET, {}, call.place, shared))
    # Fractions of 1 are not numbers of samples.
    counts = [as_size(part) for part in parts]
    lengths = [{} if count is None else {"length": integer(count)} for count in counts]
    return ListValue(tuple(LibraryObject(SUBSET, {}, call.place, shared | each) for each in lengths))


@method(TENSORS, "__len__")
@method(SUBSET, "__len__")
@method(CONCATENATED, "__len__")
def number_of_samples(call: Call) -> Value:
    """Number of samples, as far as it is known."""
    dataset = call.receiver
    if not isinstance(dataset, LibraryObject):
        return Unknown()
    fields = dataset.fields
    if dataset.kind == SUBSET:
        count = length_of(call, fields.get("indices"))
        return fields.get("length") or (Unknown() if count is None else integer(count))
    name = "datasets" if dataset.kind == CONCATENATED else "tensors"
    parts = elements(fields.get(name)) or ()
    counts = [length_of(call, part) for part in parts[: None if name == "datasets" else 1]]
    known = [count for count in counts if count is not None]
    return integer(sum(known[1:], known[0])) if known and len(known) == len(counts) else Unknown()


@function(CONCATENATED)
def concatenated(call: Call) -> Value:
    datasets = iterate(call.ev, arguments_under(call, CONCATENATED).value("datasets"), call.place.node)
    return LibraryObject(CONCATENATED, {}, call.place, {"datasets": datasets})


@method(DATASET, "__add__")
def added(call: Call) -> Value:
    datasets = ListValue((call.receiver or Unknown(), call.value(0) or Unknown()))
    return LibraryObject(CONCATENATED, {}, call.place, {"datasets": datasets})


@method(TENSORS, "__getitem__")
@method(SUBSET, "__getitem__")
@method(CONCATENATED, "__getitem__")
def sample_at(call: Call) -> Value:
    # A derived project class may store its parts differently; a slice gives several samples.
    if isinstance(call.value(0), Slice):
        return Unknown()
    return sample(call, call.receiver) if isinstance(call.receiver, LibraryObject) else Unknown()


@method(TENSORS, "__iter__")
@method(SUBSET, "__iter__")
@method(CONCATENATED, "__iter__")
def samples(call: Call) -> Value:
    return ListValue(None, sample_at(call))


_DEEPEST = 3
"""Maximum depth of the parts of a sample."""


def sample(call: Call, dataset: Value | None, is_whole: bool = False, *, joins_last: bool = False) -> Value:
    """Item of a dataset for any one index; is_whole is whether every index is drawn at some time.

    joins_last is whether the last sample comes into one batch with others.
    """
    drawn = Size.from_symbol(SampleIndex("index", 0)) if is_whole else Size.symbol("index", least=0)
    index = Integer(drawn)
    node = call.place.node
    dataset = None if dataset is None else present(dataset)
    if isinstance(dataset, LibraryObject):
        if dataset.kind == TENSORS:
            tensors = elements(dataset.fields["tensors"])
            if tensors is None:
                return Unknown()
            return TupleValue(tuple(item(call.ev, tensor, index, node) for tensor in tensors))
        if dataset.kind == SUBSET:
            part = sample(call, dataset.fields["dataset"])
            # The code may have chosen the indices of the samples other than None.
            return Unknown() if isinstance(part, PerhapsNone) and dataset.arguments else part
        stored = dataset.fields.get("sample")
        if isinstance(stored, DictValue):
            return fresh_row(stored, None)
        if dataset.kind == CONCATENATED:
            parts = dataset.fields["datasets"]
            found = [sample(call, part) for part in elements(parts) or (each(call.ev, parts),)]
            return reduce(join, found)
        method_ = call.ev.library.method(dataset.kind, "__getitem__") if _is_dataset(dataset) else None
        if method_ is not None:
            return method_(
                Call(call.ev, f"{dataset.kind}.__getitem__", call.place, Arguments([index]), dataset)
            )
        return Unknown()
    if isinstance(dataset, InstanceValue):
        if member(dataset.cls, "__getitem__") is None and member(dataset.cls, "__iter__") is not None:
            return each(call.ev, iterate(call.ev, dataset, node))
        one = call_method(call.ev, dataset, "__getitem__", Arguments([index]), node)
        return _differing(call, dataset, joins_last) or one if is_whole and _is_open(one) else one
    if isinstance(dataset, (ListValue, TupleValue)):
        samples_ = elements(dataset)
        return one_of(call, samples_) if samples_ else each(call.ev, dataset)
    if isinstance(dataset, TensorValue):
        return item(call.ev, dataset, index, node)
    return Unknown()


def _is_open(one: Value) -> bool:
    """Check for a sample with rows or tensors of unknown lengths."""
    if isinstance(one, TensorValue):
        return one.layout is None or any(size.value is None for size in one.layout.sizes)
    array = as_array(one)
    if array is not None:
        return _is_open(array)
    if isinstance(one, ListValue) and one.items is None:
        return one.length is None or one.length.value is None
    if isinstance(one, DictValue):
        return any(map(_is_open, one.fields.values()))
    return any(map(_is_open, elements(one) or ()))


def _differing(call: Call, dataset: InstanceValue, joins_last: bool) -> Value | None:
    """Representative of samples if their lengths are known and differ; None otherwise.

    Compared are the first samples with each other, then the first with the last one.
    """
    length = length_of(call, dataset)
    if length is None or length.value is None or length.value < 2:
        return None
    first = _samples_at(call, dataset, range(min(length.value, _FIRST)))
    one = one_of(call, first)
    if any(map(differs, _rows(one))):
        return one
    if not joins_last or length.value <= _FIRST or call.ev.state[Windows].taken:
        # Windows from each index on are reported on their own.
        return None
    last = _samples_at(call, dataset, [length.value - 1])
    one = one_of(call, [first[0], *last], "the last one has another length")
    return one if any(map(differs, _rows(one))) else None


def _samples_at(call: Call, dataset: InstanceValue, indices: Iterable[int]) -> list[Value]:
    """Samples of a dataset at these indices, without effects on the run."""
    call.ev.silenced += 1
    call.ev.journal.begin()
    try:
        found = [
            call_method(call.ev, dataset, "__getitem__", Arguments([Constant(number)]), call.place.node)
            for number in indices
        ]
    finally:
        call.ev.journal.undo()
        call.ev.silenced -= 1
    return list(map(as_tensors, found))


def _rows(one: Value, depth: int = 0) -> Iterator[Value]:
    """Iterate over a sample and its parts: `image, {"boxes": boxes}`."""
    yield one
    for part in one.fields.values() if isinstance(one, DictValue) else elements(one) or ():
        if depth < _DEEPEST:
            yield from _rows(part, depth + 1)


def _is_dataset(value: LibraryObject) -> bool:
    return derives(value.kind, DATASET)
