"""Lightning: a Trainer passes the batches of its loaders to the steps of the LightningModule."""

from __future__ import annotations

from shapefix.domains.devices import OF_MODULE
from shapefix.interpreter.calls import Arguments, Call, call_method
from shapefix.interpreter.classes import assigned_late, is_closed, member, outside_bases
from shapefix.interpreter.containers import DictValue, TupleValue, elements
from shapefix.interpreter.iteration import each, iterate
from shapefix.interpreter.journal import UNCHANGED
from shapefix.interpreter.values import (
    NONE,
    Constant,
    FunctionValue,
    InstanceValue,
    Integer,
    LibraryObject,
    Unknown,
    Value,
)
from shapefix.library.data.loaders import LOADER
from shapefix.library.nn.module import MODULE
from shapefix.library.nn.parameter_devices import device_of_model
from shapefix.library.ops.devices import sent
from shapefix.library.optim.modes import switch
from shapefix.library.registry import declare, derives, function, method
from shapefix.library.signatures import bound
from shapefix.library.transformers.model_calls import HARMLESS
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.polynomials import Size

LIGHTNING_MODULE, DATA_MODULE = "lightning.pytorch.LightningModule", "lightning.pytorch.LightningDataModule"
TRAINER = "lightning.pytorch.Trainer"
declare(LIGHTNING_MODULE, MODULE)
declare(DATA_MODULE, "builtins.object")
declare(TRAINER, "builtins.object")


@function(TRAINER)
def _trainer(call: Call) -> Value:
    """Create a trainer; it changes none of its settings, nor its callbacks."""
    return LibraryObject(TRAINER, dict(call.arguments.keywords), call.place)


for _kind, _modules in (
    (LIGHTNING_MODULE, ("core.", "core.module.")),
    (DATA_MODULE, ("core.", "core.datamodule.")),
    (TRAINER, ("trainer.", "trainer.trainer.")),
):
    _class = _kind.rpartition(".")[2]
    for _inside in (
        "lightning.",
        "pytorch_lightning.",
        *(
            f"{_package}.{_module}"
            for _package in ("lightning.pytorch", "pytorch_lightning")
            for _module in _modules
        ),
    ):
        declare(f"{_inside}{_class}", _kind)
        if _kind is TRAINER:
            function(f"{_inside}{_class}")(_trainer)


@dataclass(frozen=True, slots=True)
class LightningStep:
    """One loop of a trainer: the method run on each batch, and the source of the batches.

    begins are the hooks of the model that run before the first batch, before_batch the one that gets
    each batch first; off are the trainer's settings that disable the loop if they are 0.
    """

    name: str
    loader: str
    begins: tuple[str, ...]
    before_batch: str
    off: tuple[str, ...]


TRAINING = LightningStep(
    "training_step",
    "train_dataloader",
    ("on_train_start", "on_train_epoch_start"),
    "on_train_batch_start",
    ("limit_train_batches", "max_epochs", "max_steps"),
)


def _evaluation(step: str, hook: str, loader: str, limit: str) -> LightningStep:
    begins = (f"on_{hook}_start", f"on_{hook}_epoch_start")
    return LightningStep(step, loader, begins, f"on_{hook}_batch_start", (limit,))


VALIDATION = _evaluation("validation_step", "validation", "val_dataloader", "limit_val_batches")
TESTING = _evaluation("test_step", "test", "test_dataloader", "limit_test_batches")
PREDICTION = _evaluation("predict_step", "predict", "predict_dataloader", "limit_predict_batches")

_TRANSFERS = ("on_before_batch_transfer", "transfer_batch_to_device", "on_after_batch_transfer")
"""Hooks that transfer a batch from the loader to the step, in this order."""
_FITTED = "lightning_module"
"""Attribute of a trainer for its model."""


@dataclass(frozen=True, eq=False, slots=True)
class _Run:
    """A call of a trainer: the model, and the datamodule, if there is one."""

    call: Call
    model: InstanceValue
    datamodule: InstanceValue | None

    def hook(self, owner: InstanceValue | None, name: str, *arguments: Value) -> Value | None:
        """Result of the project's own method of this name; None if the project has none."""
        if owner is None or not isinstance(member(owner.cls, name), FunctionValue):
            return None
        return call_method(self.call.ev, owner, name, Arguments(list(arguments)), self.call.place.node)


@method(TRAINER, "fit")
def fit(call: Call) -> Value:
    """Validate, as Lightning does before training, and train."""
    given = bound(
        "model, train_dataloaders=None, val_dataloaders=None, datamodule=None, ckpt_path=None", call.arguments
    )
    loaders = {VALIDATION: given["val_dataloaders"], TRAINING: given["train_dataloaders"]}
    return _run(call, "fit", given, loaders)


@method(TRAINER, "validate", "test", "predict")
def evaluate(call: Call) -> Value:
    """Run one round over the batches of one loader, with the model of the last fit if none is given."""
    stage = call.name.rpartition(".")[2]
    step = {"validate": VALIDATION, "test": TESTING, "predict": PREDICTION}[stage]
    others = "datamodule=None" if stage == "predict" else "ckpt_path=None, verbose=True, datamodule=None"
    given = bound(f"model=None, dataloaders=None, {others}", call.arguments)
    _run(call, stage, given, {step: given["dataloaders"]})
    return Unknown()


def _run(call: Call, stage: str, given: dict[str, Value], loaders: dict[LightningStep, Value]) -> Value:
    ev, trainer, model, datamodule = call.ev, call.receiver, given["model"], given["datamodule"]
    if isinstance(trainer, (LibraryObject, InstanceValue)):
        if _is_none(model):
            model = trainer.fields.get(_FITTED, model)
        ev.journal.write(trainer.fields, _FITTED, model)
    for value in loaders.values():
        if isinstance(value, InstanceValue) and _derives(value, DATA_MODULE):
            datamodule = value
    if not isinstance(model, InstanceValue):
        return NONE
    # Lightning switches between the modes by itself.
    switch(ev, model, Unknown())
    known = datamodule if isinstance(datamodule, InstanceValue) else None
    run = _Run(call, model, known)
    for owner in (known, model):
        if owner is not None:
            _forget_changes(call, owner)
    for owner in (known, model):
        run.hook(owner, "prepare_data")
    for owner in (known, model):
        run.hook(owner, "setup", Constant(stage))
    run.hook(model, "configure_model")
    if stage == "fit":
        run.hook(model, "on_fit_start")
    source = known or (model if _is_none(datamodule) else None)
    for step, value in loaders.items():
        if not _is_left_out(trainer, step):
            found = run.hook(source, step.loader) if _is_none(value) or value is known else value
            if found is not None:
                _repeat(run, step, found)
    _forget_changes(call, model)
    return NONE


def _forget_changes(call: Call, owner: InstanceValue) -> None:
    """Forget attributes assigned by methods: another method may have assigned them again."""
    for name in assigned_late(owner.cls):
        if name in owner.fields:
            call.ev.journal.write(owner.fields, name, Unknown(f"self.{name}"))


def _repeat(run: _Run, step: LightningStep, loaders: Value) -> None:
    """Run the first batch of the loop, or of each of its loaders; the number of others is unknown."""
    several = _are_loaders(elements(loaders))
    each_alone = step is not TRAINING and several is not None and len(several) > 1
    for position, loader in enumerate(several if each_alone and several is not None else (loaders,)):
        journal = run.call.ev.journal
        journal.begin()
        for name in step.begins:
            run.hook(run.model, name)
        batch = _batch(run, loader) if step is TRAINING else _batch(run, _only(loader))
        number = Integer(Size.symbol("batch_idx", least=0))
        arguments: list[Value] = [_transferred(run, batch), number]
        if each_alone:
            arguments.append(Constant(position))
        run.hook(run.model, step.before_batch, *arguments)
        run.hook(run.model, step.name, *arguments[: _accepted(run.model, step.name)])
        journal.apply([UNCHANGED, journal.undo()])


def _accepted(model: InstanceValue, name: str) -> int | None:
    """Number of arguments of a step, None for any number; batch_idx is left out if it does not fit."""
    function = member(model.cls, name)
    params = function.node.params if isinstance(function, FunctionValue) else None
    if params is None or params.star_arg:
        return None
    return len(params.posonly_params) + len(params.params) - 1


def _batch(run: _Run, loader: Value) -> Value:
    """One batch of a loader, or of several at once; Unknown with possibly unknown hooks."""
    ev = run.call.ev
    owners = [owner for owner in (run.model, run.datamodule) if owner is not None]
    if not all(_is_known(run.call, owner) for owner in owners):
        return Unknown("batch")
    if isinstance(loader, (LibraryObject, InstanceValue)):
        return each(ev, iterate(ev, loader, run.call.place.node))
    if isinstance(loader, DictValue) and loader.closed and _are_loaders(tuple(loader.fields.values())):
        return DictValue({key: _batch(run, one) for key, one in loader.fields.items()})
    several = _are_loaders(elements(loader))
    if several is not None:
        return TupleValue(tuple(_batch(run, one) for one in several))
    return Unknown("batch")


def _only(loaders: Value) -> Value:
    """Loader in a list of one."""
    several = _are_loaders(elements(loaders))
    return several[0] if several is not None and len(several) == 1 else loaders


def _are_loaders(values: tuple[Value, ...] | None) -> tuple[Value, ...] | None:
    """Return the values if all of them are loaders, else None."""
    return values if values and all(_derives(value, LOADER) for value in values) else None


def _transferred(run: _Run, batch: Value) -> Value:
    """Batch after the project's hooks for the transfer to the device."""
    for name in _TRANSFERS:
        others = (Unknown("device"), Constant(0)) if name == "transfer_batch_to_device" else (Constant(0),)
        for owner in (run.datamodule, run.model):
            changed = run.hook(owner, name, batch, *others)
            if changed is not None:
                batch = changed
                break
    return sent(batch, OF_MODULE)


def _is_known(call: Call, owner: InstanceValue) -> bool:
    """Check that all base classes of an object are known, so that none hides an overridden hook."""
    others = [base for base in outside_bases(owner.cls) if base not in HARMLESS]
    return is_closed(owner.cls) and all(call.ev.library.is_class(base) for base in others)


def _derives(value: Value, kind: str) -> bool:
    if isinstance(value, LibraryObject):
        return derives(value.kind, kind)
    if isinstance(value, InstanceValue):
        return any(derives(base, kind) for base in outside_bases(value.cls))
    return False


def _is_none(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


def _is_left_out(trainer: Value | None, step: LightningStep) -> bool:
    """Check whether the trainer's settings leave the loop without batches."""
    settings = trainer.arguments if isinstance(trainer, LibraryObject) else {}
    stated = [settings[name] for name in step.off if name in settings]
    return any(isinstance(value, Constant) and value.value == 0 for value in stated)


method(LIGHTNING_MODULE, "@device")(device_of_model)


@method(LIGHTNING_MODULE, *_TRANSFERS)
@method(DATA_MODULE, *_TRANSFERS)
def same_batch(call: Call) -> Value:
    """Return the batch unchanged, on any device, as the base class's hook does."""
    return call.value(0, "batch") or Unknown()


@method(
    LIGHTNING_MODULE,
    "log",
    "log_dict",
    "print",
    "save_hyperparameters",
    "freeze",
    "unfreeze",
    "manual_backward",
    "toggle_optimizer",
    "untoggle_optimizer",
    "setup",
    "prepare_data",
    "configure_model",
    "on_fit_start",
    *TRAINING.begins,
    *VALIDATION.begins,
)
@method(DATA_MODULE, "__init__", "save_hyperparameters", "setup", "prepare_data", "teardown")
@method(TRAINER, "__init__", "save_checkpoint", "print")
def returns_none(call: Call) -> Value:
    return NONE
