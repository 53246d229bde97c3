"""Batches: events of mapping, collating and calling a model, and the batch sizes of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import ClassVar

import libcst as cst

from shapefix.interpreter import hooks
from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.evaluator import Evaluator, Loop
from shapefix.interpreter.events import Event, OpRejected
from shapefix.interpreter.joins import join_objects, join_values
from shapefix.interpreter.modules import Place
from shapefix.interpreter.option_flags import OptionFlag
from shapefix.interpreter.values import LibraryObject, Value
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.symbols import BatchSize

SHIFTED, ALIGNED = "shifted", "aligned"
"""Labels compared with the logits of the position before them, or with those of their own."""


MODEL_OUTPUT = "transformers.utils.ModelOutput"
"""Class of the outputs of models of transformers."""


@dataclass(frozen=True, eq=False, slots=True)
class Mapped(Event):
    """Result of `dataset.map(function)`: the function's result, and one sample of the new dataset."""

    returned: Value
    sample: DictValue


@dataclass(frozen=True, eq=False, slots=True)
class Stacked(Event):
    """Creation of a tensor from a list of rows or tensors: `torch.tensor`, `torch.stack`, `numpy.array`."""

    is_of_values: ClassVar[bool] = True

    function: str
    rows: Value


@dataclass(frozen=True, eq=False, slots=True)
class ListGiven(Event):
    """Call for tensors with another value: a list or a tuple of tensors, an int, the output of a model.

    given is the value, method the name of a tensor's method or attribute, empty for arguments.
    """

    is_of_values: ClassVar[bool] = True

    given: Value
    method: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Collated(Event):
    """Creation of a batch from samples; the place is the creation of the loader or the trainer.

    consumer is its class. sample is any one of the samples. collator is the object or function that puts them
    together, None for the default of the consumer; tokenizer is the one passed to a trainer, None for none.
    batch is the result, Unknown if a library's collator raises. loss is how a trainer's model uses it, as
    in ModelCalled; single is True for batches of one sample. none are the `return` statements of
    `__getitem__` without a sample, and the function if its end is reached without one; those of another
    function make a part of the sample. forward is that of a
    model of transformers with the batch as its input in training, and its loss as the trainer's. returned is
    the result of a project's model for the batch, None if it is not followed; returns are the `return`
    statements of its forward. flags are those of the command
    line that are assumed to have their defaults.
    """

    consumer: str
    sample: Value
    collator: Value | None
    tokenizer: Value | None
    batch: Value
    loss: str = ""
    single: bool = False
    none: tuple[Place, ...] = ()
    forward: CallSignature | None = None
    returned: Value | None = None
    returns: tuple[Place, ...] = ()
    flags: tuple[OptionFlag, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class BatchesDrawn(Event):
    """Iteration over a loader, by the code or by a trainer; loader is the call of its constructor."""

    loader: cst.CSTNode


@dataclass(frozen=True, eq=False, slots=True)
class ColumnsChosen(Event):
    """Selection of a dataset's columns by a trainer: the removed ones, and the collator of the others.

    consumer is its class, settings are its TrainingArguments, None for none. removes is whether it removes
    the columns that forward does not name; sample is a row with all of them. collator is the object that puts
    samples together, or the name of a function, be it the trainer's default or passed to it. is_table is
    whether the dataset is one of Hugging Face's, whose columns are removed at once.
    """

    consumer: str
    settings: LibraryObject | None
    removes: bool
    sample: DictValue
    signature: CallSignature | None
    collator: Value
    is_table: bool


@dataclass(eq=False, slots=True)
class RemovedColumns:
    """Columns removed by a trainer from the samples of the running collator."""

    consumer: str = ""
    made: Place | None = None
    settings: LibraryObject | None = None
    signature: CallSignature | None = None
    keys: frozenset[object] = frozenset()
    kept: frozenset[object] = frozenset()


@dataclass(frozen=True, eq=False, slots=True)
class RemovedColumnRead(Event):
    """Read of a column by a collator, although the trainer has removed it; Python raises a KeyError here.

    removed has the trainer, its settings and the signature of the forward that does not name the column.
    """

    key: str
    removed: RemovedColumns


@hooks.missing_key
def _note_removed(ev: Evaluator, owner: DictValue, key: object, node: cst.CSTNode) -> None:
    """Report a read of a removed column."""
    removed = ev.state[RemovedColumns]
    is_sample = removed.made is not None and removed.kept == frozenset(owner.fields)
    if is_sample and key in removed.keys and isinstance(key, str) and not ev.expects("KeyError"):
        ev.emit(RemovedColumnRead(ev.place(node), ev.calls, key, replace(removed)))


@dataclass(frozen=True, eq=False, slots=True)
class CallSignature:
    """Signature of a forward: named parameters, those without a default, and whether it takes others.

    name is its name in the user's code, `EnhancedModel.forward`; place is its definition, None in a library.
    raises is whether an unnamed key ends in a TypeError, None if unknown: transformers' heads
    with `**kwargs` swallow them. used are unnamed keys that have an effect; unused is whether all others have
    none.
    """

    name: str
    named: tuple[str, ...]
    required: frozenset[str]
    raises: bool | None
    place: Place | None = None
    used: frozenset[str] = frozenset()
    unused: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class ModelCalled(Event):
    """Call of a model's forward.

    keywords are all known keyword arguments, positional counts the others. unpacked are the dictionaries
    after `**`. certain are the keys that every batch has; complete is False where there may be others.
    trainer is the class whose loop calls it, empty for the user's own. undecided is whether the call is in a
    branch that may never be taken. first is the first positional argument; loss is how a language model uses
    labels: SHIFTED, ALIGNED, or empty if unknown.
    """

    is_of_values: ClassVar[bool] = True

    model: Value
    signature: CallSignature
    positional: int
    keywords: Mapping[str, Value]
    unpacked: tuple[DictValue, ...]
    certain: frozenset[str]
    complete: bool
    trainer: str = ""
    undecided: bool = False
    first: Value | None = None
    loss: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class BatchKeyMissing(Event):
    """Read of a key missing in all batches of a loader; collated is the call with the batch as its result."""

    batch: DictValue
    key: str
    collated: Place


@dataclass(frozen=True, eq=False, slots=True)
class OpRejectedForLastBatch(Event):
    """Rejection by torch for the last, smaller batch of a loader only."""

    is_of_values: ClassVar[bool] = True

    refused: OpRejected
    batch: BatchSize


@dataclass(eq=False, slots=True)
class Batches:
    """State of batches at this moment of a run."""

    vary: bool = False
    """Whether a loader's batch size, smaller for the last batch, is one of the symbols."""
    compared: set[BatchSize] = field(default_factory=set)
    """Batch sizes that the code compares with a number: it may leave out the smaller last batch."""
    mapping: tuple[Place, bool | None, Value] | None = None
    """Running call of `Dataset.map`: its place, whether its function gets lists, and the number of rows."""


_DATASETS = frozenset({"datasets.Dataset", "datasets.IterableDataset"})
"""Interchangeable classes of datasets, created alike."""


@join_values
def _join_datasets(left: Value, right: Value, depth: int) -> Value | None:
    if isinstance(left, LibraryObject) and isinstance(right, LibraryObject) and left.kind == right.kind:
        return join_objects(left, right, depth + 1) if left.kind in _DATASETS else None
    return None


@dataclass(frozen=True, eq=False, slots=True)
class EpochRepeated(Event):
    """Batches are drawn from a DataLoader with a shuffling DistributedSampler, in another loop.

    sampler is its creation, epochs the innermost loop around.
    """

    sampler: Place
    epochs: Loop
