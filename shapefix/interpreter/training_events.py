"""What a training loop does in its order: forward, backward, clipping, steps, and what it all stands in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from shapefix.interpreter.events import Event
from shapefix.interpreter.gradients import requires_grad
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject, Unknown, Value

if TYPE_CHECKING:
    from shapefix.interpreter.evaluator import Evaluator, Loop
    from shapefix.interpreter.modules import Place


ENABLED, SCALES = "enabled", "has scaled"
"""The fields of a GradScaler: whether it does anything at all, and whether any call of `scale` was seen."""
OWNERS = "owners of the parameters"
"""The field of an optimizer that holds the modules whose parameters it was given, None for unknown ones."""


@dataclass(frozen=True, eq=False, slots=True)
class Within:
    """A loop that an event stands in; certain tells whether each pass of the loop gets there."""

    loop: Loop
    certain: bool


@dataclass(frozen=True, eq=False, slots=True)
class TrainingEvent(Event):
    """An event in the order of a training; loops are all that are open, outermost first.

    unfollowed counts the calls before it of which nobody knows what they do.
    """

    loops: tuple[Within, ...]
    unfollowed: int


class Gradients(Value):
    """What is known of the gradients since the last backward, on all paths that lead here.

    scaled is the GradScaler that had scaled the loss, None where nobody had, and Unknown where that is not
    known. place is where backward was called, calls lead there, root is the function that nobody called in
    which these began. The others are what was done since: unscaled and zeroed by whom, and stepped which
    optimizers.
    """

    __slots__ = ("calls", "place", "root", "scaled", "stepped", "unscaled", "zeroed")

    def __init__(self, place: Place, calls: tuple[Place, ...], scaled: Value | None, root: int) -> None:
        self.place = place
        self.calls = calls
        self.scaled = scaled
        self.root = root
        self.unscaled = False
        self.zeroed: GradientsZeroed | None = None
        self.stepped: tuple[Value, ...] = ()

    def after(
        self, *, unscaled: bool = False, zeroed: GradientsZeroed | None = None, stepped: Value | None = None
    ) -> Gradients:
        """The same after one more thing was done."""
        later = Gradients(self.place, self.calls, self.scaled, self.root)
        later.unscaled = self.unscaled or unscaled
        later.zeroed = self.zeroed or zeroed
        later.stepped = self.stepped if stepped is None else (*self.stepped, stepped)
        return later


@dataclass(frozen=True, eq=False, slots=True)
class Backward(TrainingEvent):
    """`loss.backward()`; loss is None where something else than a tensor is asked.

    requires tells whether the loss requires a gradient, None where that is not known; leaf that its gradient
    flows to the loss itself, and no further.
    """

    loss: Value | None
    requires: bool | None
    leaf: bool
    gradients: Gradients


@dataclass(frozen=True, eq=False, slots=True)
class CheckpointDetached(TrainingEvent):
    """`torch.utils.checkpoint.checkpoint` runs something that is trained, and hands back no graph.

    It is reentrant, and none of the tensors that it was given requires a gradient.
    """

    function: Value


@dataclass(frozen=True, eq=False, slots=True)
class EvaluationRecorded(TrainingEvent):
    """A loop calls a module while gradients are recorded; results are its tensors that carry a graph."""

    module: Value
    results: tuple[TensorValue, ...]


@dataclass(frozen=True, eq=False, slots=True)
class LossAccumulated(TrainingEvent):
    """A loop adds a value to what it had before: `total += loss`, `total = total + loss`, `all.append(loss)`.

    holder is the code of what grows, added that of the value; own counts the loops of the function that the
    statement stands in. total is what comes out of the sum, None for a list.
    """

    holder: cst.BaseExpression
    added: cst.BaseExpression
    value: TensorValue | Unknown
    total: Value | None
    own: int


@dataclass(frozen=True, eq=False, slots=True)
class GradientsClipped(TrainingEvent):
    """Gradients are clipped: those of parameters, of which gradients tells what is known."""

    parameters: Value | None
    gradients: Gradients | None


@dataclass(frozen=True, eq=False, slots=True)
class GradientsZeroed(TrainingEvent):
    """`zero_grad()` of an optimizer or a module."""

    owner: Value


@dataclass(frozen=True, eq=False, slots=True)
class GradientsUnscaled(TrainingEvent):
    """`scaler.unscale_(optimizer)`."""

    scaler: Value
    optimizer: Value | None


@dataclass(frozen=True, eq=False, slots=True)
class OptimizerCreated(TrainingEvent):
    """An optimizer is made, or given more; modules are all below the owners of the parameters.

    given is what the code passes as parameters, None where that is not known.
    """

    optimizer: LibraryObject
    modules: frozenset[Value]
    given: Value | None


@dataclass(frozen=True, eq=False, slots=True)
class OptimizerStepped(TrainingEvent):
    """`optimizer.step()`, or `scaler.step(optimizer)`; gradients are what is known of them before.

    closure tells whether a function was handed over that computes the gradients.
    """

    optimizer: Value | None
    scaler: Value | None
    gradients: Gradients | None
    closure: bool


@dataclass(frozen=True, eq=False, slots=True)
class ScalerUpdated(TrainingEvent):
    """`scaler.update()`."""

    scaler: Value


@dataclass(frozen=True, eq=False, slots=True)
class SchedulerStepped(TrainingEvent):
    """`scheduler.step()`; optimizer is the one whose learning rate it sets."""

    scheduler: Value
    optimizer: Value | None


@dataclass(frozen=True, eq=False, slots=True)
class ModeSwitched(TrainingEvent):
    """`module.train()` or `module.eval()`; training is None where the mode is not known."""

    module: Value
    training: bool | None


@dataclass(frozen=True, eq=False, slots=True)
class ForwardCalled(TrainingEvent):
    """A module is called from outside of any forward.

    training is its mode, None where that is not known; recording tells whether gradients are recorded.
    modules are all that are known to stand below it, itself among them; moody are those of them that do
    something else in training than in evaluation, with dropout or batch statistics, and are in training mode.
    result is what the call returned.
    """

    module: Value
    training: bool | None
    recording: bool
    modules: frozenset[Value]
    mode_dependent: tuple[LibraryObject, ...]
    result: Value


def surroundings(ev: Evaluator) -> tuple[Within, ...]:
    """The loops that are open in all functions being run, outermost first."""
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


def note_accumulated(
    ev: Evaluator,
    node: cst.CSTNode,
    holder: cst.BaseExpression,
    added: cst.BaseExpression,
    value: Value,
    total: Value | None,
) -> None:
    """Tell the checks that the statement at node adds value to what holder holds, in each pass of a loop."""
    loops = ev.frame.loops
    if not loops or not isinstance(value, (TensorValue, Unknown)):
        return
    tensor = value.tensor if isinstance(value, Unknown) else value
    if ev.gradients is False or (tensor is not None and requires_grad(tensor) is False):
        return
    where = (ev.place(node), ev.calls, surroundings(ev), ev.unfollowed)
    ev.emit(LossAccumulated(*where, holder, added, value, total, len(loops)))
