"""Schedulers of the learning rate, each with its optimizer."""

from __future__ import annotations

from shapefix.domains.training import SchedulerStepped
from shapefix.interpreter.calls import Call
from shapefix.interpreter.values import NONE, LibraryObject, Value
from shapefix.library.optim.gradients import where
from shapefix.library.registry import declare, function, method

SCHEDULER = "torch.optim.lr_scheduler.LRScheduler"
_OPTIMIZER = "optimizer"
_TORCH = (
    "LambdaLR",
    "MultiplicativeLR",
    "StepLR",
    "MultiStepLR",
    "ConstantLR",
    "LinearLR",
    "ExponentialLR",
    "SequentialLR",
    "PolynomialLR",
    "CosineAnnealingLR",
    "ReduceLROnPlateau",
    "CyclicLR",
    "CosineAnnealingWarmRestarts",
    "OneCycleLR",
)
_TRANSFORMERS = (
    "get_constant_schedule",
    "get_constant_schedule_with_warmup",
    "get_cosine_schedule_with_warmup",
    "get_cosine_with_hard_restarts_schedule_with_warmup",
    "get_cosine_with_min_lr_schedule_with_warmup",
    "get_inverse_sqrt_schedule",
    "get_linear_schedule_with_warmup",
    "get_polynomial_decay_schedule_with_warmup",
    "get_reduce_on_plateau_schedule",
    "get_wsd_schedule",
)

declare(SCHEDULER, "builtins.object")
for _name in _TORCH:
    declare(f"torch.optim.lr_scheduler.{_name}", SCHEDULER)


@function(*(f"torch.optim.lr_scheduler.{name}" for name in _TORCH))
@function(*(f"transformers.{inner}{name}" for name in _TRANSFORMERS for inner in ("", "optimization.")))
def scheduler(call: Call) -> Value:
    """Scheduler of the optimizer in the first argument."""
    return _made(call, call.value(0, "optimizer"))


@function("transformers.get_scheduler", "transformers.optimization.get_scheduler")
def by_name(call: Call) -> Value:
    """Scheduler by name: the name of the schedule comes first, then the optimizer."""
    return _made(call, call.value(1, "optimizer"))


def _made(call: Call, optimizer: Value | None) -> Value:
    kind = call.name if call.name.startswith("torch.") else SCHEDULER
    fields = {} if optimizer is None else {_OPTIMIZER: optimizer}
    return LibraryObject(kind, dict(call.arguments.keywords), call.place, fields)


@method(SCHEDULER, "step")
def step(call: Call) -> Value:
    receiver = call.receiver
    if isinstance(receiver, LibraryObject):
        call.ev.emit(SchedulerStepped(*where(call), receiver, receiver.fields.get(_OPTIMIZER)))
    return NONE
