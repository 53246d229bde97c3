"""Weights changed by an optimizer between a forward pass and its backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

from shapefix.domains.registration import registered_in
from shapefix.domains.reused_graphs import GraphReused, graph_of
from shapefix.domains.saved_tensors import MadeAt, SavedTensors
from shapefix.domains.training import Backward, OptimizerStepped, Owners, TrainingEvent
from shapefix.interpreter import hooks
from shapefix.interpreter.evaluator import Evaluator, Loop
from shapefix.interpreter.events import Event
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.interpreter.values import LibraryObject, Value, facts_of
from shapefix.light_dataclasses import dataclass

_SAVE_WEIGHTS = frozenset(f"torch.nn.{name}" for name in ("Linear", "Conv1d", "Conv2d", "Conv3d"))
"""Layers whose weight is saved, if their input requires a gradient."""


@dataclass(frozen=True, eq=False, slots=True)
class WeightsStepped(Event):
    """A backward through a layer with a weight changed by an optimizer since its forward pass.

    made is the operation of the layer, before the step; step is the optimizer's.
    """

    made: MadeAt
    step: OptimizerStepped


@dataclass(eq=False, slots=True)
class CertainSteps:
    """Certain steps of optimizers so far, each with its moment."""

    steps: list[tuple[OptimizerStepped, int]] = field(default_factory=list)


def note_certain_step(ev: Evaluator, step: OptimizerStepped) -> None:
    """Record a step with gradients, unless they are cleared before."""
    gradients = step.gradients
    is_certain = not ev.silenced and not ev.frame.undecided and all(each.certain for each in step.loops[-1:])
    if is_certain and not step.closure and gradients is not None and gradients.zeroed is None:
        ev.state[CertainSteps].steps.append((step, ev.steps))


def note_stepped_weights(ev: Evaluator, backward: Backward) -> None:
    """Report a backward through weights changed by a step since; once for a backward."""
    loss = backward.loss
    steps = ev.state[CertainSteps].steps
    if ev.silenced or ev.frame.undecided or not steps or not isinstance(loss, TensorValue):
        return
    if any(isinstance(each, GraphReused) and each.backward is backward for each in ev.events):
        return
    layers = list(_saved_weights(ev, loss))
    for step, moment in reversed(steps):
        if step.calls != backward.calls or _loops(step) != _loops(backward):
            continue
        changed = _changed(step)
        trained = {id(layer) for one in _before(ev, step) for layer in _layers_of(one)}
        for layer, made in layers:
            if made.step < moment and layer in changed and id(layer) in trained:
                ev.emit(WeightsStepped(backward.place, backward.calls, made, step))
                return


@hooks.end_first_pass
def _note_next_pass(
    ev: Evaluator, loop: Loop, start: int, changes: list[tuple[str, Any, Any]], again: Callable[[], None]
) -> None:
    """Report a backward of each pass through weights stepped by the pass before."""
    inside = [step for step, _ in ev.state[CertainSteps].steps if _is_in_each_pass(step, loop)]
    if ev.silenced or not inside:
        return
    backwards = [each for each in ev.events if isinstance(each, Backward) and _is_in_each_pass(each, loop)]
    for backward in backwards:
        if not backward.keeps_graph or not isinstance(backward.loss, TensorValue):
            continue
        trained = {id(layer) for layer in _layers_of(backward)}
        for layer, made in _saved_weights(ev, backward.loss):
            step = next((each for each in inside if layer in _changed(each)), None)
            if step is not None and made.step < start and id(layer) in trained:
                ev.emit(WeightsStepped(backward.place, backward.calls, made, step))
                return


def _is_in_each_pass(event: TrainingEvent, loop: Loop) -> bool:
    return bool(event.loops) and event.loops[-1].loop is loop and event.loops[-1].certain


def _loops(event: TrainingEvent) -> tuple[Loop, ...]:
    return tuple(each.loop for each in event.loops)


def _saved_weights(ev: Evaluator, loss: TensorValue) -> Iterator[tuple[LibraryObject, MadeAt]]:
    """Yield the layers of a graph with saved weights, and their operations."""
    results = ev.state[SavedTensors].results
    for tensor in graph_of(loss):
        layer = _layer_of(tensor)
        made = results.get(tensor)
        if layer is not None and made is not None and made.once and any(map(requires_grad, tensor.sources)):
            yield layer, made


def _layer_of(tensor: TensorValue) -> LibraryObject | None:
    layer = tensor.origin.producer if tensor.origin is not None else None
    return layer if isinstance(layer, LibraryObject) and layer.kind in _SAVE_WEIGHTS else None


def _layers_of(backward: Backward) -> Iterator[Value]:
    """Yield the layers with a gradient from a backward."""
    for tensor in graph_of(backward.loss) if isinstance(backward.loss, TensorValue) else ():
        layer = _layer_of(tensor)
        if layer is not None:
            yield layer


def _before(ev: Evaluator, step: OptimizerStepped) -> list[Backward]:
    """Backwards before a step."""
    found: list[Backward] = []
    for event in ev.events:
        if event is step:
            return found
        if isinstance(event, Backward):
            found.append(event)
    return []


def _changed(step: OptimizerStepped) -> frozenset[Value]:
    """Modules with parameters certainly in an optimizer."""
    owners = facts_of(step.optimizer).known(Owners)
    found: frozenset[Value] = frozenset()
    for module in () if owners is None else owners.modules:
        found |= registered_in(module) or frozenset()
    return found
