"""Steps of a training, and the `try` statements around them."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

import libcst as cst

from shapefix.domains.devices import is_module
from shapefix.domains.gradients import Gradients
from shapefix.interpreter import hooks
from shapefix.interpreter.containers import ListValue, elements
from shapefix.interpreter.evaluator import Evaluator, Loop
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import (
    ClassValue,
    Constant,
    FunctionValue,
    InstanceValue,
    LibraryObject,
    Reference,
    Value,
    is_text,
)
from shapefix.light_dataclasses import dataclass

_ALL = frozenset({"builtins.Exception", "builtins.BaseException", "builtins.RuntimeError"})


class StepKind(StrEnum):
    """Kind of a step, in words."""

    MODEL = "a call of the model"
    LOSS = "the loss"
    BACKWARD = "the backward pass"
    LOADER = "the loader"
    MADE = "the making of a model or an optimizer"
    AGAIN = "a call of the function that runs already"


@dataclass(frozen=True, eq=False, slots=True)
class TrainStep:
    """Step of a training or an evaluation, and the calls leading there, outermost first.

    recorded is whether torch may have kept a graph of it, for the gradients.
    """

    kind: StepKind
    place: Place
    calls: tuple[Place, ...]
    recorded: bool


@dataclass(frozen=True, slots=True)
class EnclosingLoop:
    """Running loop: over the batches of a loader, or over settings.

    Settings are items that the code lists and that are not data: numbers, names, models.
    """

    over_batches: bool = False
    of_settings: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class ExceptClause:
    """Handler: qualified names of its exceptions (None for everything), and the steps in its body."""

    node: cst.ExceptHandler | cst.ExceptStarHandler
    catches: frozenset[str] | None
    acts: tuple[TrainStep, ...]

    @property
    def catches_all(self) -> bool:
        """Check whether the handler catches every exception raised by torch."""
        return self.catches is None or not self.catches.isdisjoint(_ALL)


@dataclass(frozen=True, eq=False, slots=True)
class TryBlock(Event):
    """`try` statement with steps of a training or an evaluation in its body.

    place is the statement, function the one around it, None at the top level of a file. loops are those
    around it in that function, outermost first; repeated is whether a caller of the function loops. hidden
    are the events of the body, and of its calls.
    """

    function: cst.CSTNode | None
    acts: tuple[TrainStep, ...]
    handlers: tuple[ExceptClause, ...]
    loops: tuple[EnclosingLoop, ...]
    repeated: bool
    hidden: tuple[Event, ...]

    @property
    def tries_settings(self) -> bool:
        """Check whether the loop tries several configurations, not several batches."""
        if self.loops and self.loops[-1].over_batches:
            return False
        return any(act.kind is StepKind.MADE for act in self.acts) or any(
            loop.of_settings for loop in self.loops
        )


@dataclass(eq=False, slots=True)
class TrainSteps:
    """Steps of a run so far, possibly hidden by a `try` statement."""

    open_parts: list[list[TrainStep]] = field(default_factory=list)
    """The steps in the bodies and handlers of the open `try` statements, outermost first."""
    loader_read_at: int = -1
    """Step of the interpreter at the last request of a loader's batch."""


def note_step(ev: Evaluator, kind: StepKind, node: cst.CSTNode) -> None:
    """Add a step of a training or an evaluation, at node."""
    state = ev.state[TrainSteps]
    if kind is StepKind.LOADER:
        state.loader_read_at = ev.steps
    if state.open_parts:
        recorded = ev.state[Gradients].recording is not False
        state.open_parts[-1].append(TrainStep(kind, ev.place(node), ev.calls, recorded))


@hooks.recursion
def _note_recursion(ev: Evaluator, node: cst.CSTNode) -> None:
    note_step(ev, StepKind.AGAIN, node)


@hooks.begin_loop
def _note_loop(ev: Evaluator, loop: Loop) -> None:
    over_batches = ev.state[TrainSteps].loader_read_at > loop.header
    of_settings = loop.iterable is not None and (
        _are_settings(loop.iterable) or _has_modules(ev, loop.iterable)
    )
    loop.state[EnclosingLoop] = EnclosingLoop(over_batches, of_settings)


_SETTINGS = (Constant, Reference, ClassValue, FunctionValue, InstanceValue, LibraryObject)


def _are_settings(iterable: Value) -> bool:
    """Check for items stated one by one, other than data: numbers, texts, classes or models."""
    items = elements(iterable)
    if not items:
        return False
    numbers = [item.value for item in items if isinstance(item, Constant)]
    return numbers != [*range(len(items))] and all(map(_is_setting, items))


def _has_modules(ev: Evaluator, iterable: Value) -> bool:
    """Check for a list of modules: the layers of a network."""
    if not isinstance(iterable, ListValue):
        return False
    element = iterable.contents.element
    of_library = isinstance(element, LibraryObject) and ev.library.inherits(element.kind, "torch.nn.Module")
    return of_library or is_module(ev, element)


def _is_setting(item: Value) -> bool:
    parts = elements(item)
    if parts is None:
        return isinstance(item, _SETTINGS)
    return bool(parts) and (is_text(parts[0]) or all(map(_is_setting, parts)))


class _TryRun:
    """One run of a `try` statement: the steps in its body and in its handlers."""

    def __init__(self, ev: Evaluator, node: cst.Try | cst.TryStar) -> None:
        self._ev = ev
        self._node = node
        self._parts = ev.state[TrainSteps].open_parts
        self._steps: list[TrainStep] = []
        self._hidden: tuple[Event, ...] = ()
        self._handlers: list[ExceptClause] = []
        self._parts.append([])

    def end_body(self, hidden: tuple[Event, ...]) -> bool:
        self._steps, self._hidden = self._parts.pop(), hidden
        return bool(self._steps)

    def begin_handler(self) -> None:
        self._parts.append([])

    def end_handler(
        self, node: cst.ExceptHandler | cst.ExceptStarHandler, catches: frozenset[str] | None
    ) -> None:
        self._handlers.append(ExceptClause(node, catches, tuple(self._parts.pop())))

    def end(self) -> None:
        """Emit the event of a statement with steps, and count them for the statement around it, too."""
        ev, steps = self._ev, self._steps
        if not steps:
            return
        loops = tuple(loop.state[EnclosingLoop] for loop in ev.frame.loops)
        repeated = any(frame.loops for frame in ev.frames[:-1])
        ev.emit(
            TryBlock(
                ev.place(self._node),
                ev.calls,
                ev.frame.function,
                tuple(steps),
                tuple(self._handlers),
                loops,
                repeated,
                self._hidden,
            )
        )
        if self._parts and not any(handler.catches_all for handler in self._handlers):
            self._parts[-1] += steps


@hooks.begin_try
def _begin_try(ev: Evaluator, node: cst.Try | cst.TryStar) -> _TryRun:
    return _TryRun(ev, node)
