"""torch.utils.data: datasets, samplers, and loaders of batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TypeGuard

import libcst as cst

from shapefix.domains.batches import Batches, BatchesDrawn, Collated, EpochRepeated
from shapefix.domains.devices import CPU, placed
from shapefix.domains.lost_values import note_dataset
from shapefix.domains.raggedness import differs, may_differ
from shapefix.domains.try_blocks import StepKind, note_step
from shapefix.interpreter.calls import Arguments, Call, call_method
from shapefix.interpreter.classes import member
from shapefix.interpreter.containers import DictValue, ListValue, RaggedDim, TextTuple, TupleValue, elements
from shapefix.interpreter.facts import Fact
from shapefix.interpreter.iteration import each, iterate
from shapefix.interpreter.joins import join
from shapefix.interpreter.modules import Place
from shapefix.interpreter.per_item_sizes import now
from shapefix.interpreter.subscripts import item
from shapefix.interpreter.tensor_values import Device, DeviceKind, TensorValue, requires_grad, tensor_row
from shapefix.interpreter.values import (
    NONE,
    TEXT,
    Constant,
    InstanceValue,
    Integer,
    LibraryObject,
    Number,
    PerhapsNone,
    Text,
    Unknown,
    Value,
    as_size,
    facts_of,
    integer,
    present,
)
from shapefix.library.data.collators import collate_by, is_callable
from shapefix.library.data.datasets.cells import fresh_row
from shapefix.library.data.first_batches import takes_first
from shapefix.library.data.samples import batch_size, gathered, length_of, one_of
from shapefix.library.numpy_arrays import as_array
from shapefix.library.ops.devices import sent
from shapefix.library.ops.value_range import chosen, full_of
from shapefix.library.registry import declare, derives, function, method
from shapefix.library.signatures import arguments_under
from shapefix.library.tensors import as_result, contiguous_result
from shapefix.tensors.layout import contiguous, unknown_strides
from shapefix.tensors.memory_format import suggests_channels_last
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import BatchCount, BatchSize, SampleIndex

_DATA = "torch.utils.data"
_FIRST = 4
"""Number of samples of a dataset that are compared with each other."""
DATASET, ITERABLE, LOADER = f"{_DATA}.Dataset", f"{_DATA}.IterableDataset", f"{_DATA}.DataLoader"
TENSORS, SUBSET, CONCATENATED = f"{_DATA}.TensorDataset", f"{_DATA}.Subset", f"{_DATA}.ConcatDataset"

declare(DATASET, "builtins.object")
declare(ITERABLE, DATASET)
declare(f"{_DATA}.dataset.Dataset", DATASET)
for _kind in (TENSORS, SUBSET, CONCATENATED):
    declare(_kind, DATASET)
declare(LOADER, "builtins.object")
DISTRIBUTED_SAMPLERS = (f"{_DATA}.distributed.DistributedSampler", f"{_DATA}.DistributedSampler")
for _kind in DISTRIBUTED_SAMPLERS:
    declare(_kind, "builtins.object")


@dataclass(frozen=True, slots=True)
class Sent(Fact):
    """Batches of a loader are sent to a device by accelerate."""


@dataclass(frozen=True, slots=True)
class Counted(Fact):
    """Number of batches of a loader, read by the code."""

    batches: Size


@method(DATASET, "__init__")
def returns_none(call: Call) -> Value:
    return NONE


@function(TENSORS)
def tensor_dataset(call: Call) -> Value:
    tensors = ListValue(None) if call.arguments.open else TupleValue(tuple(call.arguments.positional))
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


@method(LOADER, "__len__")
def number_of_batches(call: Call) -> Value:
    """Number of batches of a loader, a symbol for each loader if it is not a constant."""
    loader = call.receiver
    if not isinstance(loader, LibraryObject):
        return Unknown()
    count = _constant_count(call, loader)
    if count is None:
        made = loader.facts.known(Counted)
        count = made.batches if made is not None else Size.from_symbol(BatchCount("batches", loader.place))
        loader.facts[Counted] = Counted(count)
    return integer(count)


def _constant_count(call: Call, loader: LibraryObject) -> Size | None:
    samplers = loader.fields["sampler"], loader.fields["batch_sampler"]
    if not all(isinstance(each, Constant) and each.value is None for each in samplers):
        return None
    size, drops = as_size(loader.fields["batch_size"]), loader.fields["drop_last"]
    length = length_of(call, loader.fields["dataset"])
    if size is None or not size.value or length is None or length.value is None:
        return None
    if not isinstance(drops, Constant) or Sent in facts_of(loader):
        return None
    whole, rest = divmod(length.value, size.value)
    return Size.of(whole + (rest > 0 and not drops.value))


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
    # A derived project class may store its parts differently.
    return sample(call, call.receiver) if isinstance(call.receiver, LibraryObject) else Unknown()


@method(TENSORS, "__iter__")
@method(SUBSET, "__iter__")
@method(CONCATENATED, "__iter__")
def samples(call: Call) -> Value:
    return ListValue(None, sample_at(call))


def sample(call: Call, dataset: Value | None, is_whole: bool = False) -> Value:
    """Item of a dataset for any one index; is_whole is whether every index is drawn at some time."""
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
        return _differing(call, dataset) or one if is_whole and _is_open(one) else one
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


def _differing(call: Call, dataset: InstanceValue) -> Value | None:
    """Representative of the first samples if their lengths are known and differ; None otherwise."""
    length = length_of(call, dataset)
    if length is None or length.value is None or length.value < 2:
        return None
    call.ev.silenced += 1
    call.ev.journal.begin()
    try:
        first = [
            call_method(call.ev, dataset, "__getitem__", Arguments([Constant(number)]), call.place.node)
            for number in range(min(length.value, _FIRST))
        ]
    finally:
        call.ev.journal.undo()
        call.ev.silenced -= 1
    one = one_of(call, list(map(_as_tensors, first)))
    return one if any(map(differs, _rows(one))) else None


def _rows(one: Value) -> Iterator[Value]:
    """Iterate over a sample, or its parts."""
    yield one
    yield from one.fields.values() if isinstance(one, DictValue) else elements(one) or ()


def _is_dataset(value: LibraryObject) -> bool:
    return derives(value.kind, DATASET)


@function(LOADER)
def make_loader(call: Call) -> Value:
    settings = arguments_under(call, LOADER).values
    loader = LibraryObject(LOADER, settings, call.place, dict(settings))
    made = _batch(call, loader)
    if made is not None:
        note_dataset(call.ev, call.place, "DataLoader", loader.fields.get("dataset"), made.sample)
        event = Collated(
            call.place,
            call.ev.calls,
            LOADER,
            made.sample,
            made.collator,
            None,
            made.batch,
            single=made.single,
            none=made.none,
        )
        call.ev.emit(event)
    return loader


@method(LOADER, "__init__")
def initialize_loader(call: Call) -> Value:
    if isinstance(call.receiver, InstanceValue):
        for name, value in arguments_under(call, LOADER).values.items():
            call.ev.journal.write(call.receiver.fields, name, value)
    return NONE


def _note_epochs(call: Call, loader: LibraryObject) -> None:
    """Report a sampler of several processes with the same order in each pass of a loop around."""
    sampler = loader.fields.get("sampler")
    loops = [loop for frame in call.ev.frames for loop in frame.loops]
    if (
        not loops
        or not isinstance(sampler, LibraryObject)
        or sampler.place is None
        or Sent in facts_of(loader)
    ):
        return
    shuffles = sampler.arguments.get("shuffle", Constant(True))
    if "seed" in sampler.arguments:
        return
    if sampler.kind in DISTRIBUTED_SAMPLERS and isinstance(shuffles, Constant) and shuffles.value is True:
        call.ev.emit(EpochRepeated(call.place, call.ev.calls, sampler.place, loops[-1]))


@method(LOADER, "__iter__")
def batches(call: Call) -> Value:
    loader = call.receiver
    note_step(call.ev, StepKind.LOADER, call.place.node)
    if isinstance(loader, LibraryObject) and loader.place is not None:
        call.ev.emit(BatchesDrawn(call.place, call.ev.calls, loader.place.node))
        _note_epochs(call, loader)
    first = takes_first(call.place)
    made = _batch(call, loader, first) if isinstance(loader, (LibraryObject, InstanceValue)) else None
    if made is not None and Sent in facts_of(loader):
        return ListValue(None, sent(made.batch, None), axes=frozenset({RaggedDim()}))
    count = _constant_count(call, loader) if isinstance(loader, LibraryObject) else None
    one = made.batch if made is not None else Unknown()
    return ListValue(None, one, count, axes=frozenset({RaggedDim()}))


@dataclass(frozen=True, eq=False)
class _Made:
    """Batch, one of its samples, and the collate function: None for torch's default.

    single is True for batches of one sample; none is as in Collated.
    """

    sample: Value
    collator: Value | None
    batch: Value
    single: bool
    none: tuple[Place, ...] = ()


def _batch(call: Call, loader: LibraryObject | InstanceValue, first: bool = False) -> _Made | None:
    """One batch of the loader, or the first: samples combined by the collate function or torch's default."""
    fields = loader.fields
    dataset = fields.get("dataset")
    if dataset is None:
        return None
    size = _batch_size(call, loader)
    if first and size is not None and isinstance(size.only_symbol, BatchSize):
        size = size.only_symbol.full
    collator = fields["collate_fn"]
    since = now()
    sampler = (fields["sampler"], fields["batch_sampler"])
    is_whole = all(isinstance(each, Constant) and each.value is None for each in sampler)
    one = sample(call, dataset, is_whole)
    none: tuple[Place, ...] = ()
    if isinstance(one, PerhapsNone):
        # A sampler may leave out the samples that are None.
        none, one = one.exits if is_whole else (), one.value
    if isinstance(collator, Constant):
        one = _as_tensors(one)
    features, one = gathered(one, size if size is not None else Size.symbol("batch_size"), since)
    single = size is not None and size.value == 1
    if is_callable(collator):
        return _Made(one, collator, collate_by(call, collator, features), single, none)
    if not (isinstance(collator, Constant) and collator.value is None):
        return None
    if size is None:
        return _Made(one, Unknown(), one, single)
    return _Made(one, None, default_collate(call, one, size), single, none)


def _as_tensors(one: Value) -> Value:
    """Sample with tensors in the place of its arrays, as torch collates them."""
    array = as_array(one)
    if array is not None:
        return array
    if isinstance(one, TupleValue):
        parts = tuple(map(_as_tensors, one.items))
        is_same = all(part is other for part, other in zip(parts, one.items, strict=True))
        return one if is_same else TupleValue(parts, one.names)
    if isinstance(one, DictValue):
        fields = {key: _as_tensors(part) for key, part in one.fields.items()}
        if any(fields[key] is not part for key, part in one.fields.items()):
            return DictValue(fields, one.closed, one.kind, one.absent, one.written)
    return one


def _batch_size(call: Call, loader: LibraryObject | InstanceValue) -> Size | None:
    """Size of a batch, the last one perhaps smaller; None for samples one by one."""
    fields, name = loader.fields, _wanted_name(loader)
    sampler, wanted, drops = fields["batch_sampler"], fields["batch_size"], fields["drop_last"]
    by_sampler = not (isinstance(sampler, Constant) and sampler.value is None)
    if isinstance(wanted, Constant) and wanted.value is None and not by_sampler:
        return None
    if by_sampler:
        return Size.symbol(name)
    size = as_size(wanted)
    known = isinstance(drops, Constant)
    if size is not None and (size.value == 1 or (isinstance(drops, Constant) and drops.value)):
        return size
    place = loader.place if isinstance(loader, LibraryObject) else None
    drawn = isinstance(fields["sampler"], Constant)
    length = length_of(call, fields["dataset"]) if drawn else None
    call.ev.state[Batches].vary = True
    return batch_size(name, size if known else None, length, place)


def _wanted_name(loader: LibraryObject | InstanceValue) -> str:
    """Name of the batch size in the code creating the loader."""
    node = loader.place.node if isinstance(loader, LibraryObject) and loader.place is not None else None
    for argument in node.args if isinstance(node, cst.Call) else ():
        if argument.keyword is not None and argument.keyword.value == "batch_size":
            if isinstance(argument.value, cst.Name):
                return argument.value.value
            if isinstance(argument.value, cst.Attribute):
                return argument.value.attr.value
    return "batch_size"


def _are_texts(column: Value) -> TypeGuard[ListValue]:
    return isinstance(column, ListValue) and isinstance(column.element, Text)


def default_collate(call: Call, one: Value, size: Size) -> Value:
    """Combine samples like this one as torch does without a collate function.

    Unknown if torch raises for some of their contents.
    """
    return _collated(call, one, size) or Unknown()


def _collated(call: Call, one: Value, size: Size) -> Value | None:
    if isinstance(one, TensorValue):
        return _stacked(call, one, size)
    array = as_array(one)
    if array is not None:
        return _stacked(call, array, size)
    if isinstance(one, Constant):
        dtype = {bool: "bool", int: "int64", float: "float64"}.get(type(one.value))
        if dtype is not None:
            return contiguous_result(call, [size], Op.COLLATE, dtype=dtype, device=_on_cpu(call))
        return ListValue(None, TEXT, size) if isinstance(one.value, str) else None
    if isinstance(one, Number):
        return contiguous_result(call, [size], Op.COLLATE, device=_on_cpu(call))
    if isinstance(one, Integer):
        made = contiguous_result(call, [size], Op.COLLATE, dtype="int64", device=_on_cpu(call))
        return full_of(made, one)
    if isinstance(one, Text):
        return ListValue(None, TEXT, size)
    if isinstance(one, (TupleValue, ListValue)):
        return _collated_row(call, one, size)
    if isinstance(one, DictValue):
        columns = {name: _collated(call, part, size) for name, part in one.fields.items()}
        fields = {name: column for name, column in columns.items() if column is not None}
        if len(fields) < len(columns):
            return None
        # The batch has the class of the samples: that of tokenizers has a method `to`.
        return DictValue(fields, one.closed, one.kind, one.absent, one.written)
    return Unknown()


def _collated_row(call: Call, one: TupleValue | ListValue, size: Size) -> Value | None:
    """Parts of samples, or rows of one length, transposed: a list with a tensor for each."""
    items = elements(one)
    if items is None:
        assert isinstance(one, ListValue)
        if may_differ(one) and size.value != 1:
            return None
        column = _collated(call, one.element, size) if one.element is not None else Unknown()
        return None if column is None else ListValue(None, column, one.length)
    parts = [_collated(call, part, size) for part in items]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if isinstance(one, TupleValue) and one.names:
        return TupleValue(tuple(known), one.names)
    return ListValue(tuple(TextTuple.of(part.contents) if _are_texts(part) else part for part in known))


def _on_cpu(call: Call) -> Device | None:
    """Batch on the CPU; its samples must be there."""
    return placed(call.ev, CPU, call.place)


def _stacked(call: Call, one: TensorValue, size: Size) -> TensorValue | None:
    device = _on_cpu(call) if one.device is not None and one.device.kind is DeviceKind.CPU else one.device
    if may_differ(one) and size.value != 1:
        return None
    if one.layout is None:
        made = as_result(call, None, Op.COLLATE, dtype=one.dtype, device=device, is_contiguous=True)
        made.row = tensor_row(one)
        made = as_result(call, None, Op.COLLATE, dtype=one.dtype, is_contiguous=True)
        made.row, made.graph = tensor_row(one), requires_grad(one)
        return made
    sizes = (size, *one.layout.sizes)
    # Image samples in channels_last are stacked in that order.
    ordered = suggests_channels_last(one.layout) is not False
    layout = unknown_strides(sizes) if ordered else contiguous(sizes)
    made = chosen(one, as_result(call, layout, Op.COLLATE, dtype=one.dtype, device=device))
    if made.origin is not None:
        made.origin.source = one.origin
    made.row, made.graph = tensor_row(one), requires_grad(one)
    return made


@function(f"{_DATA}.default_collate", f"{_DATA}.dataloader.default_collate")
def collate(call: Call) -> Value:
    """Combine a list of samples into a batch."""
    given = arguments_under(call, f"{_DATA}.default_collate").value("batch")
    items = elements(given)
    if items:
        return default_collate(call, one_of(call, items), Size.of(len(items)))
    if isinstance(given, ListValue) and given.element is not None:
        return default_collate(call, given.element, Size.symbol("batch_size"))
    return Unknown()
