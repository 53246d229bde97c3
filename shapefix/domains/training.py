"""Order of a training loop: forward, backward, clipping, steps, and the loops around them."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import ClassVar

import libcst as cst

from shapefix.domains.gradients import Gradients
from shapefix.interpreter import hooks
from shapefix.interpreter.evaluator import Evaluator, Loop
from shapefix.interpreter.events import Event
from shapefix.interpreter.facts import Fact
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.interpreter.truth import truth
from shapefix.interpreter.values import LibraryObject, Unknown, Value, facts_of
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Enabled(Fact):
    """Setting `enabled` of a GradScaler."""

    setting: Value


def is_enabled(scaler: Value) -> bool | None:
    """Check whether a GradScaler is enabled; None if unknown."""
    enabled = facts_of(scaler).known(Enabled)
    return None if enabled is None else truth(enabled.setting)


@dataclass(frozen=True, slots=True)
class Scales(Fact):
    """A call of `scale` of a GradScaler, on any path."""


@dataclass(frozen=True, slots=True)
class Owners(Fact):
    """Modules of the parameters of an optimizer."""

    modules: frozenset[Value]


@dataclass(frozen=True, eq=False, slots=True)
class Within:
    """Loop around an event; certain is whether each pass of the loop gets there."""

    loop: Loop
    certain: bool


@dataclass(frozen=True, eq=False, slots=True)
class TrainingEvent(Event):
    """Event in the order of a training; loops are all open ones, outermost first.

    unfollowed counts the calls before it that could not be followed.
    """

    loops: tuple[Within, ...]
    unfollowed: int


class PendingGradients(Value):
    """State of the gradients since the last backward, the same on all paths to this place.

    place is the call of backward, reached through calls; entry_point is the number of the function without
    known callers for these gradients. scaled is the GradScaler of the loss, None without one, Unknown if it
    is not known. The other fields are later actions: unscaled, zeroed, and the optimizers stepped.
    """

    __slots__ = ("calls", "entry_point", "place", "scaled", "stepped", "unscaled", "zeroed")

    def __init__(
        self, place: Place, calls: tuple[Place, ...], scaled: Value | None, entry_point: int
    ) -> None:
        self.place = place
        self.calls = calls
        self.scaled = scaled
        self.entry_point = entry_point
        self.unscaled = False
        self.zeroed: GradientsZeroed | None = None
        self.stepped: tuple[Value, ...] = ()

    def after(
        self, *, unscaled: bool = False, zeroed: GradientsZeroed | None = None, stepped: Value | None = None
    ) -> PendingGradients:
        """State after one more action."""
        later = PendingGradients(self.place, self.calls, self.scaled, self.entry_point)
        later.unscaled = self.unscaled or unscaled
        later.zeroed = self.zeroed or zeroed
        later.stepped = self.stepped if stepped is None else (*self.stepped, stepped)
        return later


@dataclass(eq=False, slots=True)
class TrainingOrder:
    """State of the order of training steps at this moment of a run."""

    pending: dict[str, Value] = field(default_factory=dict)
    """Gradients since the last backward, under the key PENDING. Written to the journal."""


PENDING = "gradients"


@dataclass(frozen=True, eq=False, slots=True)
class Backward(TrainingEvent):
    """Call of `loss.backward()`; loss is None for other values than tensors.

    requires is whether the loss requires a gradient, None if unknown; leaf is whether the loss
    is a leaf itself, so that its gradient flows no further. keeps_graph is whether the graph may be used
    again afterward: `retain_graph=True`.
    """

    is_of_values: ClassVar[bool] = True

    loss: Value | None
    requires: bool | None
    leaf: bool
    gradients: PendingGradients
    keeps_graph: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class CheckpointDetached(TrainingEvent):
    """Call of `torch.utils.checkpoint.checkpoint` on trained parameters, without a graph in the result.

    It is reentrant, and none of its tensor arguments requires a gradient.
    """

    function: Value


@dataclass(frozen=True, eq=False, slots=True)
class LossAccumulated(TrainingEvent):
    """Accumulation of a loss in a loop: `total += loss`, `total = total + loss`, `all.append(loss)`.

    holder is the code of the variable, added that of the value; own counts the loops of the function around
    the statement. total is the sum, None for a list.
    """

    holder: cst.BaseExpression
    added: cst.BaseExpression
    value: TensorValue | Unknown
    total: Value | None
    own: int


@dataclass(frozen=True, eq=False, slots=True)
class BackwardOfNumber(Event):
    """Call of `backward` of a Python number, read from a tensor at a place; Python raises here.

    read_by are the calls that led to that place.
    """

    read: Place
    read_by: tuple[Place, ...]


@dataclass(frozen=True, eq=False, slots=True)
class GradientsClipped(TrainingEvent):
    """Clipping of the gradients of parameters; gradients is the state before."""

    parameters: Value | None
    gradients: PendingGradients | None


@dataclass(frozen=True, eq=False, slots=True)
class GradientsZeroed(TrainingEvent):
    """Call of `zero_grad()` of an optimizer or a module."""

    owner: Value


@dataclass(frozen=True, eq=False, slots=True)
class GradientsUnscaled(TrainingEvent):
    """Call of `scaler.unscale_(optimizer)`."""

    scaler: Value
    optimizer: Value | None


@dataclass(frozen=True, eq=False, slots=True)
class WeightsWritten(Event):
    """Loop over the parameters of modules with a write of its own: `target.data.copy_(...)`."""

    modules: frozenset[Value]


@dataclass(frozen=True, eq=False, slots=True)
class OptimizerCreated(TrainingEvent):
    """Creation or extension of an optimizer; modules are all below the owners of the parameters.

    given is what the code passes as parameters, None if unknown.
    """

    optimizer: LibraryObject
    modules: frozenset[Value]
    given: Value | None


class RejectedArgument(Enum):
    """Arguments of an optimizer rejected by torch."""

    EMPTY = "an empty list"
    NO_PARAMETERS = "the parameters of a module without any"
    METHOD = "a method, not called"
    MODULE = "a module"
    TENSOR = "one tensor"
    GENERATOR = "a list of generators"
    NOT_A_LEAF = "a tensor with a graph"


@dataclass(frozen=True, eq=False, slots=True)
class ParametersRejected(Event):
    """Creation of an optimizer with parameters rejected by torch.

    value is the argument, or the item or module in it.
    """

    is_of_values: ClassVar[bool] = True

    reason: RejectedArgument
    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class OptimizerStepped(TrainingEvent):
    """Call of `optimizer.step()`, or `scaler.step(optimizer)`; gradients is the state before.

    closure is whether the step gets a function that computes the gradients.
    """

    optimizer: Value | None
    scaler: Value | None
    gradients: PendingGradients | None
    closure: bool


@dataclass(frozen=True, eq=False, slots=True)
class ScalerUpdated(TrainingEvent):
    """Call of `scaler.update()`."""

    scaler: Value


@dataclass(frozen=True, eq=False, slots=True)
class SchedulerStepped(TrainingEvent):
    """Call of `scheduler.step()`; optimizer is the one with the scheduled learning rate.

    follows is whether torch wants the call after the optimizer's first step, as it does since version 1.1.
    """

    scheduler: Value
    optimizer: Value | None
    follows: bool = True


def surroundings(ev: Evaluator) -> tuple[Within, ...]:
    """Open loops in all running functions, outermost first."""
    found: list[Within] = []
    certain = True
    for frame in reversed(ev.frames):
        tests, exits = len(frame.tests), len(frame.exits)
        for loop in reversed(frame.loops):
            jumps = loop.continues or loop.breaks or exits > loop.exits
            certain = certain and tests == loop.tests and not jumps
            found.append(Within(loop, certain))
            tests, exits = loop.tests, loop.exits
        certain = certain and not tests and not exits
    return tuple(reversed(found))


@hooks.add_up
def note_accumulated(
    ev: Evaluator,
    node: cst.CSTNode,
    holder: cst.BaseExpression,
    added: cst.BaseExpression,
    value: Value,
    total: Value | None,
) -> None:
    """Report an addition of value to holder at node, in each pass of a loop."""
    loops = ev.frame.loops
    if not loops or not isinstance(value, (TensorValue, Unknown)):
        return
    tensor = value.tensor if isinstance(value, Unknown) else value
    if ev.state[Gradients].recording is False or (tensor is not None and requires_grad(tensor) is False):
        return
    where = (ev.place(node), ev.calls, surroundings(ev), ev.unfollowed)
    ev.emit(LossAccumulated(*where, holder, added, value, total, len(loops)))
