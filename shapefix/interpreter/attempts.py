"""What a loop may not tell: the steps of a training in a `try` statement, and numbers that are cut off."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import libcst as cst

from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place

_ALL = frozenset({"builtins.Exception", "builtins.BaseException", "builtins.RuntimeError"})


class StepKind(StrEnum):
    """What a step is, in words."""

    MODEL = "a call of the model"
    LOSS = "the loss"
    BACKWARD = "the backward pass"
    LOADER = "the loader"
    MADE = "the making of a model or an optimizer"
    AGAIN = "a call of the function that runs already"


@dataclass(frozen=True, eq=False, slots=True)
class TrainStep:
    """A step of a training or an evaluation, and the calls that led there, outermost first.

    recorded tells whether torch may have kept a graph of it, for the gradients.
    """

    kind: StepKind
    place: Place
    calls: tuple[Place, ...]
    recorded: bool


@dataclass(frozen=True, eq=False, slots=True)
class EnclosingLoop:
    """A loop that is being run; over_batches tells that it asks a loader for them.

    of_settings tells that it goes through what the code states one by one and is no data: numbers, models.
    """

    node: cst.For | cst.While
    over_batches: bool
    of_settings: bool


@dataclass(frozen=True, eq=False, slots=True)
class ExceptClause:
    """A handler, the qualified names of what it catches (None for everything), and the steps in its body."""

    node: cst.ExceptHandler | cst.ExceptStarHandler
    catches: frozenset[str] | None
    acts: tuple[TrainStep, ...]

    @property
    def catches_all(self) -> bool:
        """Whether it catches what torch raises, whatever that is."""
        return self.catches is None or not self.catches.isdisjoint(_ALL)


@dataclass(frozen=True, eq=False, slots=True)
class TryBlock(Event):
    """A try statement whose body holds steps of a training or an evaluation.

    place is the statement, function the one that it stands in, None at the top level of a file. loops are
    those around it in that function, outermost first; repeated tells that a caller of the function loops.
    hidden is what happened in the body, and in what it called.
    """

    function: cst.CSTNode | None
    acts: tuple[TrainStep, ...]
    handlers: tuple[ExceptClause, ...]
    loops: tuple[EnclosingLoop, ...]
    repeated: bool
    hidden: tuple[Event, ...]

    @property
    def tries_settings(self) -> bool:
        """Whether one configuration is tried after the other, and not one batch after the other."""
        if self.loops and self.loops[-1].over_batches:
            return False
        return any(act.kind is StepKind.MADE for act in self.acts) or any(
            loop.of_settings for loop in self.loops
        )


@dataclass(frozen=True, eq=False, slots=True)
class ClampedExp(Event):
    """An exponential, which was computed at exponential, is replaced by bound where it is larger."""

    exponential: Place
    bound: float
