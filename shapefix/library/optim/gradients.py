"""Gradients from backward to step: computing, scaling, clipping and discarding them."""

from __future__ import annotations

from typing import NamedTuple

from shapefix.domains.gradients import is_leaf
from shapefix.domains.reused_graphs import note_second_backward
from shapefix.domains.stepped_weights import note_stepped_weights
from shapefix.domains.training import (
    PENDING,
    Backward,
    BackwardOfNumber,
    GradientsClipped,
    GradientsZeroed,
    PendingGradients,
    TrainingOrder,
    Within,
    surroundings,
)
from shapefix.domains.try_blocks import StepKind, note_step
from shapefix.interpreter.attributes import NUMBER_OR_NONE
from shapefix.interpreter.calls import Call
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.interpreter.values import NONE, ReadNumber, Unknown, Value, as_tensor
from shapefix.library.accelerate import ACCELERATOR
from shapefix.library.nn.module import MODULE
from shapefix.library.registry import function, method, tensor_method
from shapefix.library.tensors import as_result
from shapefix.tensors.layout import Layout
from shapefix.tensors.ops import Op

_FARTHEST = 12


class Where(NamedTuple):
    """Common fields of all events of a training."""

    place: Place
    calls: tuple[Place, ...]
    loops: tuple[Within, ...]
    unfollowed: int


def where(call: Call) -> Where:
    """Position of a call: its place, the calls leading there, the loops around it."""
    ev = call.ev
    return Where(call.place, ev.calls, surroundings(ev), ev.unfollowed)


def known_gradients(call: Call) -> PendingGradients | None:
    """Known facts of the gradients at this moment; None if nothing holds on all paths."""
    found = call.ev.state[TrainingOrder].pending.get(PENDING)
    # Gradients of the script do not exist in every call of one of its functions.
    return found if isinstance(found, PendingGradients) and found.entry_point == call.ev.entry_point else None


def remember(call: Call, gradients: Value) -> None:
    """Record the new state of the gradients."""
    pending = call.ev.state[TrainingOrder].pending
    # The state before any branch is the final one on paths without a backward.
    pending.setdefault(PENDING, NONE)
    call.ev.journal.write(pending, PENDING, gradients)


def _scaled_by(tensor: TensorValue | None) -> Value | None:
    """GradScaler used to multiply a loss; None without one, Unknown if unknown."""
    step = tensor.origin if tensor is not None else None
    if step is None:
        return Unknown("scaler")
    if step.op is Op.GRAD_SCALE:
        return step.producer
    for _ in range(_FARTHEST):
        if step is None:
            return None
        if step.op is Op.GRAD_SCALE:
            return Unknown("scaler")
        step = step.source
    return Unknown("scaler")


@tensor_method("backward")
def backward(call: Call, tensor: TensorValue) -> Value:
    return _computed(call, tensor, _scaled_by(tensor))


@method(ACCELERATOR, "backward")
@function("torch.autograd.backward")
def backward_of(call: Call) -> Value:
    """Compute gradients of the given tensor; accelerate scales by itself."""
    own = call.receiver is None
    tensor = as_tensor(call.value(0, "tensors"))
    return _computed(call, tensor, _scaled_by(tensor) if own else Unknown("scaler"), 2)


def _may_keep_graph(call: Call, retain: int) -> bool:
    """Whether a backward may leave its graph usable; retain is the position of `retain_graph`."""
    settings = call.constant(retain, "retain_graph", False), call.constant(retain + 1, "create_graph", False)
    return call.arguments.open or any(setting is not False for setting in settings)


def _computed(call: Call, tensor: TensorValue | None, scaled: Value | None, retain: int = 1) -> Value:
    note_step(call.ev, StepKind.BACKWARD, call.place.node)
    at = where(call)
    gradients = PendingGradients(at.place, at.calls, scaled, call.ev.entry_point)
    remember(call, gradients)
    requires = requires_grad(tensor) if tensor is not None else None
    leaf = tensor is not None and is_leaf(call.ev, tensor)
    event = Backward(*at, tensor, requires, leaf, gradients, _may_keep_graph(call, retain))
    note_second_backward(call.ev, event)
    note_stepped_weights(call.ev, event)
    call.ev.emit(event)
    return NONE


@method(MODULE, "zero_grad")
def zeroed(call: Call) -> Value:
    """Discard the gradients."""
    owner = call.receiver
    if owner is None:
        return NONE
    event = GradientsZeroed(*where(call), owner)
    gradients = known_gradients(call)
    if gradients is not None:
        remember(call, gradients.after(zeroed=event))
    call.ev.emit(event)
    return NONE


_CLIPS = "clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"


@function(*(f"torch.nn.utils.{inner}{name}" for inner in ("", "clip_grad.") for name in _CLIPS))
def clipped(call: Call) -> Value:
    """Clip gradients in place; the result is the norm of all of them before."""
    call.ev.emit(GradientsClipped(*where(call), call.value(0, "parameters"), known_gradients(call)))
    return as_result(call, Layout((), ()), Op.REDUCTION) if "norm" in call.name else NONE


@method(ACCELERATOR, "clip_grad_norm_", "clip_grad_value_", "unscale_gradients")
def clipped_by_accelerate(call: Call) -> Value:
    """Unscale and clip gradients, as accelerate does."""
    gradients = known_gradients(call)
    if gradients is not None:
        remember(call, gradients.after(unscaled=True))
    return as_result(call, Layout((), ()), Op.REDUCTION)


@function(f"{NUMBER_OR_NONE}.backward")
def backward_of_number(call: Call) -> Value:
    number = call.receiver
    if isinstance(number, ReadNumber) and not call.ev.expects("AttributeError"):
        call.ev.emit(BackwardOfNumber(call.place, call.ev.calls, number.place, number.calls))
    return Unknown()
