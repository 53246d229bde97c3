"""Options of the command line, and values chosen by their defaults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field

from shapefix.interpreter.containers import ListValue, TupleValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.joins import join_values
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    ClassValue,
    Constant,
    FunctionValue,
    InstanceValue,
    Integer,
    LibraryObject,
    OneOf,
    Unknown,
    Value,
)
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.options import options_in


class OptionFlag(Unknown):
    """Flag of the command line, or its negation, False or True by default.

    option is the flag as typed, `--fast`; place is its declaration. negated is whether the value is that of
    `not args.fast`.
    """

    __slots__ = ("default", "negated", "option", "place")

    def __init__(self, name: str, default: bool, option: str, place: Place) -> None:
        super().__init__(name)
        self.default = default
        self.option = option
        self.place = place
        self.negated = False

    def inverse(self) -> OptionFlag:
        """Value of `not flag`."""
        made = OptionFlag(self.hint, not self.default, self.option, self.place)
        made.negated = not self.negated
        return made


class OptionText(Unknown):
    """Text option of the command line; default is its value if the command line omits it."""

    __slots__ = ("default",)

    def __init__(self, name: str, default: str) -> None:
        super().__init__(name)
        self.default = default


class OptionTest(Unknown):
    """Comparison of an option: `args.model == "LSTM"`, `args.classes > 1`."""

    __slots__ = ()


@dataclass(eq=False, slots=True)
class OptionLosses:
    """Whether a test of an option lost an object: the value after both branches is unknown."""

    found: bool = False


def is_of_option(value: Value) -> bool:
    """Check for a text option, or a number computed from an option."""
    return isinstance(value, OptionText) or (isinstance(value, Integer) and bool(options_in(value.size)))


def is_option(value: Value) -> bool:
    """Check whether the command line decides about a condition."""
    return isinstance(value, (OptionFlag, OptionTest))


def note_option_loss(ev: Evaluator) -> None:
    """Note that an object depends on an option: a run with the defaults knows it."""
    if not ev.takes_defaults:
        ev.state[OptionLosses].found = True


_OBJECTS = (InstanceValue, LibraryObject, TensorValue, FunctionValue, ClassValue, TupleValue, ListValue)


def note_lost_choice(ev: Evaluator, tested: Value, joined: Value | None, *sides: Value) -> None:
    """Note a loss if one side of a test of an option is an object, and both together are unknown."""
    if (
        is_option(tested)
        and isinstance(joined, Unknown)
        and any(isinstance(each, _OBJECTS) for each in sides)
    ):
        note_option_loss(ev)


@join_values
def join_flags(left: Value, right: Value, depth: int = 0) -> Value | None:
    """Join one option read in two ways, from the command line or from a file; None for other values."""
    if isinstance(left, OptionText) and isinstance(right, OptionText):
        return left if (left.hint, left.default) == (right.hint, right.default) else None
    if isinstance(left, OptionFlag) and isinstance(right, OptionFlag):
        same = (left.option, left.default, left.negated) == (right.option, right.default, right.negated)
        return left if same else None
    return None


@dataclass(eq=False, slots=True)
class AssumedDefaults:
    """Flags assumed to have their defaults, since a value depends on them."""

    flags: dict[str, OptionFlag] = field(default_factory=dict)


def assumed(ev: Evaluator) -> tuple[OptionFlag, ...]:
    """Return the flags assumed so far to have their defaults."""
    return tuple(ev.state[AssumedDefaults].flags.values())


def by_default(ev: Evaluator, tested: Value, joined: Value, first: Value, second: Value) -> Value:
    """Choose between two values by a flag's default, if nothing is known of both together."""
    is_lost = type(joined) is Unknown or (isinstance(joined, OneOf) and not joined.modules)
    if not isinstance(tested, OptionFlag) or not is_lost:
        return joined
    if any(isinstance(each, Unknown) for each in (first, second)) or _is_setting(first, second):
        return joined
    ev.state[AssumedDefaults].flags.setdefault(tested.option, tested)
    return first if tested.default else second


def _is_setting(first: Value, second: Value) -> bool:
    """Check for numbers, truth values and None, as settings of libraries take them."""
    sides = (first, second)
    return all(isinstance(each, Constant) and not isinstance(each.value, str) for each in sides)


@contextmanager
def muted_unless_default(ev: Evaluator, tested: Value, outcome: bool) -> Iterator[None]:
    """Report nothing from a branch against an assumed default."""
    contradicts = (
        isinstance(tested, OptionFlag)
        and tested.default is not outcome
        and tested.option in ev.state[AssumedDefaults].flags
    )
    ev.silenced += contradicts
    try:
        yield
    finally:
        ev.silenced -= contradicts
