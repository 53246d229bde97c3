"""Training and evaluation mode of modules."""

from __future__ import annotations

from dataclasses import field

from shapefix.domains.training import TrainingEvent
from shapefix.interpreter import hooks
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import InstanceValue, LibraryObject, Unknown, Value
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class EvaluationRecorded(TrainingEvent):
    """Call of a module in a loop while gradients are recorded; results are its tensors with a graph."""

    module: Value
    results: tuple[TensorValue, ...]


@dataclass(frozen=True, eq=False, slots=True)
class ModeSwitched(TrainingEvent):
    """Call of `module.train()` or `module.eval()`; training is None if the mode is unknown."""

    module: Value
    training: bool | None


@dataclass(frozen=True, eq=False, slots=True)
class ForwardCalled(TrainingEvent):
    """Call of a module from outside of any forward.

    training is its mode, None if unknown; recording is whether gradients are recorded. modules
    are all known modules below it, itself included; mode_dependent are those in training mode that compute
    something else in evaluation, with dropout or batch statistics. result is the result of the call. loaded
    is whether a part comes from `from_pretrained`, and is still in evaluation mode because of it. called are
    the modules called during the call, this one included. with_mode are those of mode_dependent in any
    mode.
    """

    module: Value
    training: bool | None
    recording: bool
    modules: frozenset[Value]
    mode_dependent: tuple[LibraryObject, ...]
    result: Value
    loaded: bool = False
    called: frozenset[Value] = frozenset()
    with_mode: tuple[LibraryObject, ...] = ()


@dataclass(eq=False, slots=True)
class ModuleModes:
    """State of the modes of modules at this moment of a run."""

    switched_to: dict[Value, Value] = field(default_factory=dict)
    """Modes of modules set by the code: TRUE for training. Written to the journal."""
    set_in: dict[Value, int] = field(default_factory=dict)
    """Entry points in which modules were created, or switched last. Written to the journal."""
    open_calls: int = 0
    """Number of nested running calls of modules."""
    called: set[Value] = field(default_factory=set)
    """Modules called since the outermost running call of a module began."""


@hooks.escape
def _may_be_switched(ev: Evaluator, value: Value) -> None:
    if isinstance(value, (InstanceValue, LibraryObject)):
        ev.journal.write(ev.state[ModuleModes].switched_to, value, Unknown())


@hooks.copied
def _keep_mode(ev: Evaluator, value: Value, copy: Value) -> None:
    modes = ev.state[ModuleModes]
    for known in (modes.switched_to, modes.set_in):
        if value in known:
            ev.journal.write(known, copy, known[value])
