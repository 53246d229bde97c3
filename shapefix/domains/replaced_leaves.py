"""Leaves replaced by a result in a loop: `w = w - lr * w.grad` has no gradient in the next pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

import libcst as cst

from shapefix.domains.gradients import Gradients, NoGradientRead, is_computed
from shapefix.interpreter import hooks
from shapefix.interpreter.evaluator import Evaluator, Loop
from shapefix.interpreter.modules import Place, dotted_name
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.light_dataclasses import dataclass


@dataclass(eq=False, slots=True)
class GradientReads:
    """Reads of `.grad` so far: the tensor, the place and the innermost loop of the function."""

    known: list[tuple[TensorValue, Place, Loop]] = field(default_factory=list)


def note_gradient_read(ev: Evaluator, tensor: TensorValue, place: Place) -> None:
    """Record a read of the gradient of a tensor in a loop, in each pass of it."""
    if ev.frame.loops and not ev.frame.undecided and tensor.certain and requires_grad(tensor):
        ev.state[GradientReads].known.append((tensor, place, ev.frame.loops[-1]))


@hooks.end_first_pass
def _note_replaced(
    ev: Evaluator, loop: Loop, start: int, changes: list[tuple[str, Any, Any]], again: Callable[[], None]
) -> None:
    """Report each read of a gradient of a leaf replaced by the pass."""
    if ev.silenced or ev.state[Gradients].retained:
        return
    for name, old, new in changes:
        if name.startswith(".") or not isinstance(old, TensorValue) or not isinstance(new, TensorValue):
            continue
        if new is old or not is_computed(ev, new):
            continue
        for tensor, place, around in ev.state[GradientReads].known:
            # Another variable may still hold the leaf.
            is_read = isinstance(place.node, cst.Attribute) and dotted_name(place.node.value) == name
            if tensor is old and is_read and around is loop and place.module is ev.frame.module:
                ev.emit(NoGradientRead(place, ev.calls, new, True, is_replaced=True))
