"""What happens to samples on their way into a model: tokenizing, mapping, collating, calling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.events import Event, OpRejected
from shapefix.interpreter.joins import join_objects, join_values
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import LibraryObject, Value
from shapefix.tensors.symbols import BatchSize

SHIFTED, ALIGNED = "shifted", "aligned"
"""A label is compared with the logits of the position before it, or with those of its own."""


@dataclass(frozen=True, eq=False, slots=True)
class Mapped(Event):
    """`dataset.map(function)`: what the function returned, and one sample of the new dataset."""

    returned: Value
    sample: DictValue


@dataclass(frozen=True, eq=False, slots=True)
class Stacked(Event):
    """A tensor was made of a list of rows or tensors, by `torch.tensor`, `torch.stack`, `numpy.array`."""

    function: str
    rows: Value


@dataclass(frozen=True, eq=False, slots=True)
class ListGiven(Event):
    """A layer that takes a tensor was handed a list of tensors."""

    given: ListValue | TupleValue


@dataclass(frozen=True, eq=False, slots=True)
class Collated(Event):
    """A batch was made of samples; the place is where the loader, or the trainer, is made.

    consumer is its class. sample is what one of the samples is like. collator is the object or function that
    puts them together, None for the default of the consumer; tokenizer is what a trainer was given, None
    where it got none. batch is what came out, Unknown where a library's collator raises. loss is
    what a trainer's model does with it, as in ModelCalled; single tells that batches hold one sample.
    """

    consumer: str
    sample: Value
    collator: Value | None
    tokenizer: Value | None
    batch: Value
    loss: str = ""
    single: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class ColumnsChosen(Event):
    """A trainer was given a dataset: which of its columns it removes, and what the others go through.

    consumer is its class, settings are its TrainingArguments, None where it got none. removes tells whether
    it removes the columns that forward does not name; sample is a row with all of them. collator is the
    object that puts samples together, or the name of a function, be it the trainer's default or given.
    is_table tells whether the dataset is one of Hugging Face's, whose columns are removed at once.
    """

    consumer: str
    settings: LibraryObject | None
    removes: bool
    sample: DictValue
    signature: CallSignature | None
    collator: Value
    is_table: bool


@dataclass(frozen=True, eq=False, slots=True)
class CallSignature:
    """What forward takes: the named parameters, those without a default, and whether it takes any other.

    name is what the user's code calls it, `EnhancedModel.forward`; place is where it is defined, None in a
    library. raises tells whether a key that is not named ends in a TypeError, None where that is not known:
    transformers' heads that take `**kwargs` swallow them. used are keys that do something though they are
    not named; unused tells whether nothing is done with the others at all.
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
    """A model's forward was called.

    keywords are all keyword arguments that are known to be handed over, positional counts the others.
    unpacked are the dictionaries behind `**`. certain are the keys that every batch has; complete is False
    where there may be others. trainer is the class whose loop calls it, empty for the user's own. undecided
    tells whether the call stands in a branch that may never be taken. first is the first positional argument;
    loss is what a language model does with labels: SHIFTED, ALIGNED, or empty where that is not known.
    """

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
class OpRejectedForLastBatch(Event):
    """torch raises at this place for the last batch of a loader only, which is smaller than the others."""

    refused: OpRejected
    batch: BatchSize


@dataclass(eq=False, slots=True)
class Batches:
    """What is known of the batches of a run."""

    vary: bool = False
    """Whether the size of a loader's batches, of which the last one is smaller, is one of the symbols."""
    mapping: tuple[Place, bool | None] | None = None
    """The call of `Dataset.map` whose function is running, and whether the function gets lists of samples."""


_DATASETS = frozenset({"datasets.Dataset", "datasets.IterableDataset"})
"""Objects of which a program uses one or the other, created alike."""


@join_values
def _join_datasets(left: Value, right: Value, depth: int) -> Value | None:
    if isinstance(left, LibraryObject) and isinstance(right, LibraryObject) and left.kind == right.kind:
        return join_objects(left, right, depth + 1) if left.kind in _DATASETS else None
    return None
