"""transformers.Trainer: which columns it keeps, what it collates them with, what it hands to forward."""

from __future__ import annotations

from shapefix.interpreter.axes import now
from shapefix.interpreter.batch_events import Collated
from shapefix.interpreter.calls import Call
from shapefix.interpreter.classes import member
from shapefix.interpreter.values import (
    NONE,
    TRUE,
    Constant,
    DictValue,
    InstanceValue,
    LibraryObject,
    Reference,
    Unknown,
    Value,
)
from shapefix.library.collators import DEFAULT, WITH_PADDING, collate_by, gathered, is_callable
from shapefix.library.data import sample
from shapefix.library.registry import declare, function, method
from shapefix.library.signatures import bound
from shapefix.tensors.polynomials import Size

TRAINER, SEQ2SEQ_TRAINER = "transformers.Trainer", "transformers.Seq2SeqTrainer"
ARGUMENTS = "transformers.TrainingArguments"
SEQ2SEQ_ARGUMENTS = "transformers.Seq2SeqTrainingArguments"
declare(TRAINER, "builtins.object")
declare(SEQ2SEQ_TRAINER, TRAINER)
declare(ARGUMENTS, "builtins.object")
declare(SEQ2SEQ_ARGUMENTS, ARGUMENTS)

_SIGNATURE = (
    "model=None, args=None, data_collator=None, train_dataset=None, eval_dataset=None, "
    "processing_class=None, model_init=None, compute_loss_func=None, compute_metrics=None, callbacks=None, "
    "tokenizer=None"
)
_OWN_LOADERS = ("get_train_dataloader", "_get_train_sampler", "_remove_unused_columns")


@function(ARGUMENTS, SEQ2SEQ_ARGUMENTS)
def training_arguments(call: Call) -> Value:
    """The arguments that the code states are its fields; what it does not state has its default."""
    fields = dict(call.arguments.keywords)
    if not call.arguments.open:
        fields.setdefault("remove_unused_columns", TRUE)
    return LibraryObject(call.name, {}, call.place, fields)


@function(TRAINER, SEQ2SEQ_TRAINER)
def make_trainer(call: Call) -> Value:
    settings = bound(_SIGNATURE, call.arguments)
    trainer = LibraryObject(call.name, settings, call.place, dict(settings))
    _train(call, call.name, settings)
    return trainer


@method(TRAINER, "__init__")
def initialize_trainer(call: Call) -> Value:
    """The trainer of a project that derives from the library's."""
    settings = bound(_SIGNATURE, call.arguments)
    trainer = call.receiver
    if isinstance(trainer, InstanceValue):
        for name, value in settings.items():
            call.ev.journal.write(trainer.fields, name, value)
        if all(member(trainer.cls, name) is None for name in _OWN_LOADERS):
            _train(call, TRAINER, settings)
    return NONE


@method(
    TRAINER,
    "train",
    "evaluate",
    "predict",
    "save_model",
    "save_state",
    "push_to_hub",
    "log",
    "add_callback",
    "log_metrics",
    "save_metrics",
    "is_world_process_zero",
    "create_optimizer",
    "get_train_dataloader",
    "get_eval_dataloader",
)
def answered(call: Call) -> Value:
    return Unknown()


def _train(call: Call, kind: str, settings: dict[str, Value]) -> None:
    """What happens to the first batch of training, and of evaluation."""
    seen: list[Value] = []
    for name in ("train_dataset", "eval_dataset"):
        dataset = settings[name]
        if isinstance(dataset, Unknown) or (isinstance(dataset, Constant) and dataset.value is None):
            continue
        since = now()
        one = sample(call, dataset)
        if not isinstance(one, DictValue) or any(one is other for other in seen):
            continue
        seen.append(one)
        _collate(call, kind, settings, one, since)


def _collate(call: Call, kind: str, settings: dict[str, Value], one: DictValue, since: int) -> None:
    tokenizer = _tokenizer(settings)
    collator = settings["data_collator"]
    features, row = gathered(one, Size.symbol("batch_size"), since)
    if isinstance(collator, Constant) and collator.value is None:
        if tokenizer is None:
            used: Value = Reference(DEFAULT)
        elif isinstance(tokenizer, LibraryObject):
            used = LibraryObject(WITH_PADDING, {"tokenizer": tokenizer}, call.place)
        else:
            return
        batch = collate_by(call, used, features)
        call.ev.emit(Collated(call.place, call.ev.calls, kind, row, None, tokenizer, batch))
    elif is_callable(collator):
        batch = collate_by(call, collator, features)
        call.ev.emit(Collated(call.place, call.ev.calls, kind, row, collator, tokenizer, batch))


def _tokenizer(settings: dict[str, Value]) -> Value | None:
    """What the trainer was given to tokenize with, under its name of version 4 or of version 5."""
    for name in ("processing_class", "tokenizer"):
        given = settings[name]
        if not (isinstance(given, Constant) and given.value is None):
            return given
    return None
