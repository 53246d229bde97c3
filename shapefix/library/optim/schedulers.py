"""Schedulers of the learning rate, each with its optimizer."""

from __future__ import annotations

from shapefix.domains.training import SchedulerStepped
from shapefix.interpreter.calls import Call
from shapefix.interpreter.refused_calls import report_wrong_count
from shapefix.interpreter.values import NONE, LibraryObject, Value
from shapefix.library.optim.gradients import where
from shapefix.library.registry import declare, function, method
from shapefix.library.required_versions import is_at_least
from shapefix.library.signatures import bound
from shapefix.library.torch_signatures import signature

SCHEDULER = "torch.optim.lr_scheduler.LRScheduler"
_OF_METRIC = "torch.optim.lr_scheduler.ReduceLROnPlateau"
"""The scheduler whose `step` needs the metric."""
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

_STEPS = {
    "get_cosine_schedule_with_warmup": 2,
    "get_cosine_with_hard_restarts_schedule_with_warmup": 2,
    "get_cosine_with_min_lr_schedule_with_warmup": 2,
    "get_linear_schedule_with_warmup": 2,
    "get_polynomial_decay_schedule_with_warmup": 2,
    "get_scheduler": 3,
    "get_wsd_schedule": 3,
}
"""Positions of `num_training_steps` in functions of transformers."""

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
    settings = dict(call.arguments.keywords)
    if call.name.startswith("torch."):
        settings = bound(signature(call.name), call.arguments)
    elif not call.arguments.open:
        position = _STEPS.get(call.name.rpartition(".")[2])
        steps = None if position is None else call.value(position, "num_training_steps")
        settings |= {} if steps is None else {"num_training_steps": steps}
    return LibraryObject(kind, settings, call.place, fields)


@method(SCHEDULER, "step")
def step(call: Call) -> Value:
    receiver = call.receiver
    if isinstance(receiver, LibraryObject):
        given = call.arguments
        if receiver.kind == _OF_METRIC and not (given.everything or given.open):
            report_wrong_count(call.ev, call.place, "ReduceLROnPlateau", "step", ("metrics",), 2, 0)
            return NONE
        follows = is_at_least(call.ev, "1.1", "torch")
        call.ev.emit(SchedulerStepped(*where(call), receiver, receiver.fields.get(_OPTIMIZER), follows))
    return NONE
