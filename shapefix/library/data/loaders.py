"""Loaders of batches of torch.utils.data, and their samplers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import libcst as cst

from shapefix.domains.batches import Batches, BatchesDrawn, Collated, EpochRepeated
from shapefix.domains.lost_values import note_dataset
from shapefix.domains.try_blocks import StepKind, note_step
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue, RaggedDim, elements
from shapefix.interpreter.facts import Fact
from shapefix.interpreter.modules import Place
from shapefix.interpreter.option_flags import assumed
from shapefix.interpreter.per_item_sizes import now
from shapefix.interpreter.truth import is_none
from shapefix.interpreter.values import (
    NONE,
    Constant,
    InstanceValue,
    LibraryObject,
    PerhapsNone,
    Unknown,
    Value,
    as_size,
    facts_of,
    integer,
)
from shapefix.library.data.collators import collate_by, is_callable
from shapefix.library.data.default_collation import as_tensors, default_collate
from shapefix.library.data.first_batches import takes_first
from shapefix.library.data.samples import batch_size, gathered, length_of
from shapefix.library.data.short_windows import note_short_windows
from shapefix.library.data.torch_datasets import sample
from shapefix.library.ops.devices import sent
from shapefix.library.registry import declare, function, method
from shapefix.library.reversed_arrays import note_reversed_samples
from shapefix.library.signatures import arguments_under
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import BatchCount, BatchSize

_DATA = "torch.utils.data"
LOADER = f"{_DATA}.DataLoader"
declare(LOADER, "builtins.object")
DISTRIBUTED_SAMPLERS = (f"{_DATA}.distributed.DistributedSampler", f"{_DATA}.DistributedSampler")
_COMPLETE_SAMPLERS = (f"{_DATA}.RandomSampler", f"{_DATA}.SequentialSampler")
"""Samplers that get to each sample, unless they have more than one argument."""
for _kind in (*DISTRIBUTED_SAMPLERS, *_COMPLETE_SAMPLERS):
    declare(_kind, "builtins.object")


@dataclass(frozen=True, slots=True)
class Sent(Fact):
    """Batches of a loader are sent to a device by accelerate."""


@dataclass(frozen=True, slots=True)
class Counted(Fact):
    """Number of batches of a loader, read by the code."""

    batches: Size


@function(*_COMPLETE_SAMPLERS)
def make_sampler(call: Call) -> Value:
    if call.arguments.open or len(call.arguments.positional) > 1:
        return Unknown()
    given = {"data_source": call.value(0, "data_source") or Unknown()} | call.arguments.keywords
    return LibraryObject(call.name, given, call.place)


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
            flags=assumed(call.ev),
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


def _is_complete(sampler: Value, dataset: Value) -> bool:
    """Check that a loader gets to each sample of its dataset: without a sampler, or with a complete one."""
    if isinstance(sampler, LibraryObject) and sampler.kind in _COMPLETE_SAMPLERS:
        return len(sampler.arguments) == 1 and sampler.arguments.get("data_source") is dataset
    return is_none(sampler) is True


def _empty_parts(one: Value) -> Iterator[Place]:
    """Iterate over the returns of None instead of a part of a sample."""
    for part in one.fields.values() if isinstance(one, DictValue) else elements(one) or ():
        if isinstance(part, PerhapsNone):
            yield from part.exits


def _joins_last(call: Call, fields: Mapping[str, Any]) -> bool:
    """Check that the last sample of the dataset comes into one batch with others."""
    size, drops, shuffles = (fields.get(name) for name in ("batch_size", "drop_last", "shuffle"))
    length = length_of(call, fields["dataset"])
    known = as_size(size), length
    numbers = [None if each is None else each.value for each in known]
    if numbers[0] is None or numbers[1] is None or numbers[0] < 2:
        return False
    if isinstance(shuffles, Constant) and shuffles.value is True:
        return True
    rest = numbers[1] % numbers[0]
    return rest == 0 or (rest > 1 and isinstance(drops, Constant) and drops.value is False)


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
    is_whole = _is_complete(fields["sampler"], dataset) and is_none(fields["batch_sampler"]) is True
    one = sample(call, dataset, is_whole, joins_last=_joins_last(call, fields))
    none: tuple[Place, ...] = ()
    if isinstance(one, PerhapsNone):
        # A sampler may leave out the samples that are None.
        none, one = one.exits if is_whole else (), one.value
    elif is_whole:
        none = tuple(_empty_parts(one))
    if isinstance(collator, Constant):
        if call.name == LOADER:
            note_reversed_samples(call, one)
        one = as_tensors(one)
    features, one = gathered(one, size if size is not None else Size.symbol("batch_size"), since)
    single = size is not None and size.value == 1
    if is_callable(collator):
        return _Made(one, collator, collate_by(call, collator, features), single, none)
    if not (isinstance(collator, Constant) and collator.value is None):
        return None
    if size is None:
        return _Made(one, Unknown(), one, single)
    if is_whole and not single:
        note_short_windows(call, loader, dataset, one)
    return _Made(one, None, default_collate(call, one, size), single, none)


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
