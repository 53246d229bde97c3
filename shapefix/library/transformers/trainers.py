"""transformers.Trainer: kept columns, collation, and arguments of forward."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.batches import Collated, ColumnsChosen, ModelCalled, RemovedColumns
from shapefix.domains.lost_values import note_dataset
from shapefix.domains.versions import DataRequired
from shapefix.interpreter.calls import Arguments, Call, call_method, inherited_init
from shapefix.interpreter.classes import member
from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.dictionaries import certain_keys, is_complete
from shapefix.interpreter.events import OperationCalled
from shapefix.interpreter.facts import Facts
from shapefix.interpreter.joins import join_objects, join_values
from shapefix.interpreter.modules import Place
from shapefix.interpreter.option_flags import assumed
from shapefix.interpreter.per_item_sizes import now
from shapefix.interpreter.values import (
    NONE,
    TRUE,
    BoundMethod,
    Constant,
    FunctionValue,
    InstanceValue,
    LibraryObject,
    Reference,
    Unknown,
    Value,
)
from shapefix.interpreter.watching import statements_of
from shapefix.library.data.collators import DEFAULT, WITH_PADDING, collate_by, is_callable
from shapefix.library.data.datasets.objects import as_dataset
from shapefix.library.data.samples import gathered
from shapefix.library.data.torch_datasets import sample
from shapefix.library.registry import declare, function, method
from shapefix.library.required_versions import is_at_least
from shapefix.library.signatures import bound
from shapefix.library.transformers.added_tokens import note_rows_missing
from shapefix.library.transformers.class_labels import compare_labels
from shapefix.library.transformers.classifier_padding import note_trained
from shapefix.library.transformers.model_calls import signature_of
from shapefix.library.transformers.models import classes_of
from shapefix.library.transformers.token_losses import token_loss
from shapefix.tensors.polynomials import Size

TRAINER, SEQ2SEQ_TRAINER = "transformers.Trainer", "transformers.Seq2SeqTrainer"
ARGUMENTS = "transformers.TrainingArguments"
SEQ2SEQ_ARGUMENTS = "transformers.Seq2SeqTrainingArguments"
declare(TRAINER, "builtins.object")
declare(SEQ2SEQ_TRAINER, TRAINER)
declare(ARGUMENTS, "builtins.object")
declare(SEQ2SEQ_ARGUMENTS, ARGUMENTS)

SIGNATURE = (
    "model=None, args=None, data_collator=None, train_dataset=None, eval_dataset=None, "
    "processing_class=None, model_init=None, compute_loss_func=None, compute_metrics=None, callbacks=None, "
    "tokenizer=None"
)
LABELS = ("label", "label_ids")
"""Columns that a trainer always keeps, even if forward does not name them."""
_OWN_STEPS = ("compute_loss", "training_step", "_prepare_inputs", "_prepare_input")
_OWN_LOADERS = ("get_train_dataloader", "_get_train_sampler", "_remove_unused_columns")


@function(ARGUMENTS, SEQ2SEQ_ARGUMENTS)
def training_arguments(call: Call) -> Value:
    """Training arguments with the stated fields; others have defaults."""
    fields = dict(call.arguments.keywords)
    if not call.arguments.open:
        fields.setdefault("remove_unused_columns", TRUE)
    facts = Facts.of(DataRequired()) if is_at_least(call.ev, "4.46") else Facts()
    return LibraryObject(call.name, {}, call.place, fields, facts)


@join_values
def join_training_arguments(left: Value, right: Value, depth: int = 0) -> Value | None:
    """Join the training arguments of a command line and of a file; None for other values."""
    if isinstance(left, LibraryObject) and isinstance(right, LibraryObject) and left.kind == right.kind:
        return join_objects(left, right, depth + 1) if left.kind in (ARGUMENTS, SEQ2SEQ_ARGUMENTS) else None
    return None


@function(TRAINER, SEQ2SEQ_TRAINER)
def make_trainer(call: Call) -> Value:
    settings = bound(SIGNATURE, call.arguments)
    trainer = LibraryObject(call.name, settings, call.place, dict(settings))
    _train(call, call.name, settings)
    return trainer


@method(TRAINER, "__init__")
def initialize_trainer(call: Call) -> Value:
    """Initialize a project's trainer derived from the library's."""
    settings = bound(SIGNATURE, call.arguments)
    trainer = call.receiver
    if isinstance(trainer, InstanceValue):
        for name, value in settings.items():
            call.ev.journal.write(trainer.fields, name, value)
        if all(member(trainer.cls, name) is None for name in _OWN_LOADERS):
            _train(call, TRAINER, settings)
    return NONE


@inherited_init
def create_derived_trainer(call: Call) -> None:
    """Initialize a project's trainer without an `__init__` of its own."""
    if call.name not in (f"{TRAINER}.__init__", f"{SEQ2SEQ_TRAINER}.__init__"):
        return
    initialize_trainer(call)
    if call.ev.notes_operations:
        given = tuple(call.arguments.positional), dict(call.arguments.keywords)
        call.ev.emit(OperationCalled(call.place, call.ev.calls, call.name, call.receiver, *given, NONE))


@method(TRAINER, "train")
def train(call: Call) -> Value:
    note_trained(call)
    return Unknown()


@method(
    TRAINER,
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
    """Run the first batch of training, and of evaluation."""
    seen: list[Value] = []
    for name in ("train_dataset", "eval_dataset"):
        dataset = settings[name]
        if isinstance(dataset, Constant) and dataset.value is None:
            continue
        since = now()
        one = sample(call, dataset, is_whole=True)
        note_dataset(call.ev, call.place, kind.rpartition(".")[2], dataset, one)
        used = _collator(call, settings)
        # A function of the project may make batches of any samples, a collator of the library of rows only.
        is_own = isinstance(used, (FunctionValue, BoundMethod, InstanceValue))
        if used is None or not (is_own or isinstance(one, DictValue)):
            continue
        if any(one is other for other in seen):
            continue
        seen.append(one)
        if isinstance(one, DictValue):
            one = _choose(call, kind, settings, one, used, as_dataset(dataset) is not None)
        _collate(call, kind, settings, one, used, since, name == "train_dataset")
        call.ev.state[RemovedColumns].made = None


def _collator(call: Call, settings: dict[str, Value]) -> Value | None:
    """Collator, given or default; None if unknown."""
    collator, tokenizer = settings["data_collator"], _tokenizer(settings)
    if not (isinstance(collator, Constant) and collator.value is None):
        return collator if is_callable(collator) else None
    if tokenizer is None:
        return Reference(DEFAULT)
    is_known = isinstance(tokenizer, LibraryObject)
    return LibraryObject(WITH_PADDING, {"tokenizer": tokenizer}, None) if is_known else None


def _choose(
    call: Call, kind: str, settings: dict[str, Value], one: DictValue, used: Value, is_table: bool
) -> DictValue:
    """Row without the columns unknown to forward, if the trainer removes them."""
    given = settings["args"]
    arguments = given if isinstance(given, LibraryObject) else None
    removes = _removes(given)
    if removes is None:
        return one
    signature = signature_of(call.ev, settings["model"])
    call.ev.emit(
        ColumnsChosen(
            call.place, call.ev.calls, kind, arguments, removes, one, signature, used, is_table=is_table
        )
    )
    if not removes or signature is None:
        return one
    kept = {key: value for key, value in one.fields.items() if key in (*signature.named, *LABELS)}
    state = call.ev.state[RemovedColumns]
    state.consumer, state.made, state.settings, state.signature = kind, call.place, arguments, signature
    state.keys, state.kept = frozenset(one.fields.keys() - kept.keys()), frozenset(kept)
    return DictValue(kept, one.closed, one.kind, one.absent, one.written)


def _removes(arguments: Value) -> bool | None:
    """Check whether unused columns are removed; None if unknown."""
    if isinstance(arguments, Constant) and arguments.value is None:
        return True
    setting = arguments.fields.get("remove_unused_columns") if isinstance(arguments, LibraryObject) else None
    return bool(setting.value) if isinstance(setting, Constant) else None


def _collate(
    call: Call,
    kind: str,
    settings: dict[str, Value],
    one: Value,
    used: Value,
    since: int,
    is_training: bool,
) -> None:
    features, row = gathered(one, Size.symbol("batch_size"), since)
    collator: Value | None = settings["data_collator"]
    if isinstance(collator, Constant):
        collator = None
    batch, tokenizer = collate_by(call, used, features), _tokenizer(settings)
    if isinstance(batch, DictValue):
        padded = isinstance(used, LibraryObject)
        note_rows_missing(call, settings["model"], batch.fields.get("input_ids"), padded)
    model = _model(call, settings)
    loss, single = token_loss(model), _is_single(settings)
    signature = None if model is None or not is_training else signature_of(call.ev, model)
    event = Collated(
        call.place,
        call.ev.calls,
        kind,
        row,
        collator,
        tokenizer,
        batch,
        loss,
        single,
        forward=signature if isinstance(model, LibraryObject) else None,
        returned=_returned(call, model, batch) if is_training else None,
        returns=_returns(model) if is_training else (),
        flags=assumed(call.ev),
    )
    call.ev.emit(event)
    if is_training and isinstance(batch, DictValue):
        compare_labels(call, model, batch.fields.get("labels"), classes_of(call, model))
    if signature is not None and isinstance(batch, DictValue):
        certain = certain_keys(call.ev, batch)
        keywords = {str(key): batch.fields[key] for key in certain}
        call.ev.emit(
            ModelCalled(
                call.place,
                call.ev.calls,
                model or Unknown(),
                signature,
                0,
                keywords,
                (batch,),
                frozenset(keywords),
                is_complete(call.ev, batch),
                trainer=kind,
                undecided=call.ev.frame.undecided,
            )
        )


def _returned(call: Call, model: Value | None, batch: Value) -> Value | None:
    """Result of the forward of a project's model for a batch with known keys; no events are emitted."""
    if not isinstance(model, InstanceValue) or not isinstance(batch, DictValue) or not batch.closed:
        return None
    if model.open or member(model.cls, "forward") is None:
        return None
    given = {key: value for key, value in batch.fields.items() if isinstance(key, str)}
    call.ev.silenced += 1
    call.ev.journal.begin()
    try:
        return call_method(call.ev, model, "forward", Arguments([], given), call.place.node)
    finally:
        call.ev.journal.undo()
        call.ev.silenced -= 1


def _returns(model: Value | None) -> tuple[Place, ...]:
    """The `return` statements in the forward of a project's model."""
    method = member(model.cls, "forward") if isinstance(model, InstanceValue) else None
    if not isinstance(method, FunctionValue) or not isinstance(method.node, cst.FunctionDef):
        return ()
    found = statements_of(method.node.body)
    return tuple(Place(method.module, node) for node in found if isinstance(node, cst.Return) and node.value)


def _model(call: Call, settings: dict[str, Value]) -> Value | None:
    """Model providing the training loss; None if the project's trainer computes its own."""
    trainer, model = call.receiver, settings["model"]
    if isinstance(trainer, InstanceValue):
        if any(member(trainer.cls, name) is not None for name in _OWN_STEPS):
            return None
    own = settings["compute_loss_func"]
    has_own = not (isinstance(own, Constant) and own.value is None)
    return None if has_own or isinstance(model, Constant) else model


def _is_single(settings: dict[str, Value]) -> bool:
    """Check for batches of one sample, for all given datasets."""
    arguments = settings["args"]
    stated = arguments.fields if isinstance(arguments, LibraryObject) else {}
    used = [part for part in ("train", "eval") if not _is_left_out(settings[f"{part}_dataset"])]
    sizes = [stated.get(f"per_device_{part}_batch_size") for part in used]
    return bool(sizes) and all(isinstance(size, Constant) and size.value == 1 for size in sizes)


def _is_left_out(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


def _tokenizer(settings: dict[str, Value]) -> Value | None:
    """Tokenizer of the trainer, under its name of version 4 or of version 5."""
    for name in ("processing_class", "tokenizer"):
        given = settings[name]
        if not (isinstance(given, Constant) and given.value is None):
            return given
    return None
