"""Random integers: numbers differing from call to call, between known bounds."""

from __future__ import annotations

from shapefix.domains.raggedness import Origin
from shapefix.interpreter.any_items import any_number
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, elements
from shapefix.interpreter.iteration import each, iterate
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import FLOAT, Constant, Integer, Number, Unknown, Value, as_size
from shapefix.library.registry import function
from shapefix.library.signatures import BoundArguments, fitted
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import DrawnNumber

SIGNATURES = {"random.randint": "a, b", "random.randrange": "stop | start, stop"}
"""Parameters of the functions that are read here."""


def drawn_number(call: Call, least: object, largest: object) -> Value:
    """Random number between two bounds; Unknown if they are not known, or leave no choice."""
    if type(least) is not int or type(largest) is not int or least >= largest:
        return Unknown()
    source = Origin(call.place, "a random length")
    return Integer(Size.from_symbol(DrawnNumber("n", None, source, least, largest)))


def number_below(call: Call, given: BoundArguments) -> Value:
    """Random number of numpy: `randint(high)`, `randint(low, high)`, without the upper bound."""
    low, high = (_stated(given.values.get(name)) for name in ("low", "high"))
    if given.is_none("high"):
        low, high = 0, low
    return drawn_number(call, low, high - 1 if type(high) is int else None)


def _stated(value: Value | None) -> object:
    return value.value if isinstance(value, Constant) else None


@function("random.randint")
def within(call: Call) -> Value:
    given = fitted((SIGNATURES[call.name],), call.arguments)
    return drawn_number(call, *(_stated(given.values.get(name)) for name in ("a", "b")))


@function("random.randrange")
def in_range(call: Call) -> Value:
    if len(call.arguments.positional) > 2:
        return Unknown()
    given = fitted(tuple(SIGNATURES[call.name].split(" | ")), call.arguments)
    start, stop = (_stated(given.values.get(name)) for name in ("start", "stop"))
    least = 0 if "start" not in given.values else start
    return drawn_number(call, least, stop - 1 if type(stop) is int else None)


@function(*(f"random.{name}" for name in ("random", "uniform", "gauss", "normalvariate", "betavariate")))
def real(call: Call) -> Value:
    """Random float; of tensors as its bounds, a tensor."""
    given = (*call.arguments.positional, *call.arguments.keywords.values())
    return FLOAT if all(isinstance(each, (Constant, Integer, Number)) for each in given) else Unknown()


@function("random.choice")
def any_item(call: Call) -> Value:
    """Arbitrary number of a list of known ones; Unknown for other items."""
    given = call.value(0, "seq")
    items = elements(given) or ()
    return any_number(items) or Unknown()


@function("random.sample", "random.choices")
def some_items(call: Call) -> Value:
    """List of arbitrary items of another one."""
    given = call.value(0, "population")
    if given is None or call.arguments.open:
        return Unknown()
    count = as_size(call.value(1, "k"))
    iterable = iterate(call.ev, given, call.place.node)
    axes = iterable.axes if isinstance(iterable, ListValue) else frozenset()
    return ListValue(None, each(call.ev, iterable), count, axes)


def drawn_item(call: Call, tensor: TensorValue) -> Value:
    """Number in a tensor of random numbers; Unknown for other tensors."""
    known = tensor.extremes
    if known is None or not known.drawn or tensor.storage.is_written:
        return Unknown()
    return drawn_number(call, known.least.value, known.most.value)
