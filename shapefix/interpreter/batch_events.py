"""What happens to samples on their way into a model: tokenizing, mapping, collating, calling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import libcst as cst

from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject, Value

SHIFTED, ALIGNED = "shifted", "aligned"
"""A label is compared with the logits of the position before it, or with those of its own."""


@dataclass(frozen=True, eq=False, slots=True)
class Tokenized(Event):
    """A tokenizer was called.

    arguments are those of the call by name, with their defaults. several tells whether a list of texts was
    given, None where that is not known. mapped is the call of `Dataset.map` that runs the function in which
    this stands, None outside of one; batched tells how that hands over its samples. rows are the lists of ids
    that go into one tensor, None where no tensor is asked for.
    """

    tokenizer: LibraryObject
    arguments: Mapping[str, Value]
    several: bool | None
    result: Value
    mapped: Place | None = None
    batched: bool | None = None
    rows: Value | None = None


@dataclass(frozen=True, eq=False, slots=True)
class PadTokenMissing(Event):
    """A tokenizer that has no pad token at this moment was asked to pad.

    subject is what the code calls the tokenizer, asked what needs the pad token: `padding=True`,
    `tokenizer.pad`, a collator. later tells whether that raises only with the first batch.
    """

    tokenizer: LibraryObject
    subject: cst.CSTNode | None
    asked: str
    later: bool = False


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
class TokensWithoutRow(Event):
    """A model is given ids of a tokenizer to which a token was added, and its embedding was never resized.

    token is the first one added, at `added`; pads tells whether it is the pad token, and nothing else was.
    """

    model: LibraryObject
    tokenizer: LibraryObject
    token: str
    added: Place
    pads: bool


@dataclass(frozen=True, eq=False, slots=True)
class TokensCompared(Event):
    """A cross entropy over all targets but those that are -100: nobody weighs them, or leaves out others."""

    targets: TensorValue


@dataclass(frozen=True, eq=False, slots=True)
class MoveOfNonTensor(Event):
    """`value.to(device)` of a value that is no tensor, and no module: a list, a number, a string.

    key is the batch's key that it stood under, None where it came from no dictionary.
    """

    value: Value
    key: object = field(default=None)
    batch: DictValue | None = None
