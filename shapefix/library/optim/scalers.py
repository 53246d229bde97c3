"""Gradient scalers of mixed precision: the loss is multiplied, the gradients divided before the step."""

from __future__ import annotations

from shapefix.domains.training import Enabled, GradientsUnscaled, ScalerUpdated, Scales
from shapefix.interpreter.calls import Call
from shapefix.interpreter.facts import Facts
from shapefix.interpreter.values import NONE, TRUE, LibraryObject, Unknown, Value, as_tensor, facts_of
from shapefix.library.optim.gradients import known_gradients, remember, where
from shapefix.library.optim.optimizers import note_optimizer_step
from shapefix.library.registry import declare, function, method
from shapefix.library.tensors import copied
from shapefix.tensors.ops import Op

SCALER = "torch.amp.GradScaler"
_OLD = ("torch.cuda.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler", "torch.cpu.amp.GradScaler")
_NEW = (SCALER, "torch.amp.grad_scaler.GradScaler", "torch.GradScaler")

NAMES = frozenset({*_OLD, *_NEW})
"""Qualified names of the class."""

declare(SCALER, "builtins.object")


@function(*_NEW)
def scaler(call: Call) -> Value:
    return _made(call, 5)


@function(*_OLD)
def scaler_of_device(call: Call) -> Value:
    return _made(call, 4)


def any_scaler() -> LibraryObject:
    """Scaler passed as an argument, without known facts."""
    return LibraryObject(SCALER, {}, None, facts=Facts.of(Enabled(Unknown("enabled")), Scales()))


def _made(call: Call, position: int) -> Value:
    given = call.value(position, "enabled")
    enabled = given or (Unknown() if call.arguments.open else TRUE)
    return LibraryObject(SCALER, {}, call.place, facts=Facts.of(Enabled(enabled)))


@method(SCALER, "scale")
def scale(call: Call) -> Value:
    """Multiply the loss."""
    if isinstance(call.receiver, LibraryObject):
        # In any branch: the code scales.
        call.receiver.facts[Scales] = Scales()
    tensor = as_tensor(call.value(0, "outputs"))
    if tensor is None:
        return Unknown()
    result = copied(call, tensor, Op.GRAD_SCALE)
    if result.origin is not None:
        result.origin.producer = call.receiver
    return result


@method(SCALER, "unscale_")
def unscale(call: Call) -> Value:
    """Divide the gradients of the optimizer."""
    gradients = known_gradients(call)
    if gradients is not None:
        remember(call, gradients.after(unscaled=True))
    if call.receiver is not None:
        call.ev.emit(GradientsUnscaled(*where(call), call.receiver, call.value(0, "optimizer")))
    return NONE


@method(SCALER, "step")
def step(call: Call) -> Value:
    """Run the optimizer's step with divided gradients; skip it if they are not finite."""
    note_optimizer_step(call, call.value(0, "optimizer"), call.receiver)
    return Unknown("stepped")


@method(SCALER, "update")
def update(call: Call) -> Value:
    if call.receiver is not None:
        call.ev.emit(ScalerUpdated(*where(call), call.receiver))
    return NONE


@method(SCALER, "is_enabled")
def is_enabled(call: Call) -> Value:
    enabled = facts_of(call.receiver).known(Enabled)
    return Unknown() if enabled is None else enabled.setting
