"""Python's numbers: conversions, extremes, sums and products of sizes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from shapefix.domains.raggedness import longest, total, varying
from shapefix.interpreter.any_items import any_number
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, elements
from shapefix.interpreter.joins import join_contents, without_length
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.texts import OneOfTexts
from shapefix.interpreter.truth import truth
from shapefix.interpreter.values import (
    FALSE,
    FLOAT,
    NUMBER,
    TRUE,
    Constant,
    Integer,
    Number,
    Unknown,
    Value,
    WholeNumber,
    as_size,
    integer,
    is_text,
)
from shapefix.library.numpy_arrays import as_array
from shapefix.library.ops.clamped_exponentials import exponential, note_least, same_number
from shapefix.library.ops.elementwise import result_of
from shapefix.library.ops.value_range import only_number
from shapefix.library.python.random_numbers import drawn_item
from shapefix.library.registry import function
from shapefix.library.signatures import arguments_under
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size, product
from shapefix.tensors.quotients import maximum, minimum

_INTEGRAL: dict[str, Callable[[Any], int]] = {
    "int": int,
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "index": operator.index,
}


@function("builtins.round")
def rounded(call: Call) -> Value:
    """Integer nearest to a number; with a number of digits the result is not one."""
    given = arguments_under(call, "builtins.round")
    return _integral(call, given.value("number"), "round") if given.is_none("ndigits") else Unknown()


@function("builtins.ord")
def code_point(call: Call) -> Value:
    held = call.value(0)
    if isinstance(held, Constant) and isinstance(held.value, str) and len(held.value) == 1:
        return Constant(ord(held.value))
    return Integer(Size.symbol("letter", least=0)) if is_text(held) else Unknown()


@function("builtins.int", "math.floor", "math.ceil", "operator.index")
def integral(call: Call) -> Value:
    if len(call.arguments.positional) != 1 or call.arguments.keywords:
        # `int("ff", 16)` is rare.
        return Unknown()
    return _integral(call, call.arguments.positional[0], call.name.rpartition(".")[2])


def _integral(call: Call, value: Value, name: str) -> Value:
    if isinstance(value, Integer):
        return value
    if isinstance(value, OneOfTexts):
        return any_number([_integral(call, Constant(text), name) for text in value.values]) or Unknown()
    if isinstance(value, WholeNumber):
        return integer(value.size)
    held = value if isinstance(value, TensorValue) else as_array(value)
    if held is not None:
        return only_number(held) or drawn_item(call, held)
    if isinstance(value, Unknown) and value.hint:
        return Unknown(value.hint, size=value.size())
    if isinstance(value, Constant):
        try:
            return Constant(_INTEGRAL[name](value.value))
        except (TypeError, ValueError, OverflowError):
            return Unknown()
    return Unknown()


@function("math.sqrt", "math.isqrt")
def root(call: Call) -> Value:
    """Root of a number; an integer for a known square."""
    value = call.value(0)
    if isinstance(value, Constant) and type(value.value) in (int, float) and 0 <= value.value < 2**53:
        found = math.isqrt(int(value.value))
        if call.name == "math.isqrt":
            return Constant(found) if type(value.value) is int else Unknown()
        return Constant(math.sqrt(value.value))
    size = as_size(value) if isinstance(value, Integer) else None
    if call.name == "math.sqrt":
        return FLOAT
    return Unknown() if size is None else NUMBER


function("math.exp")(exponential)


@function("builtins.float", "math.log", "math.log2", "math.pow", "math.cos", "time.time")
def real(call: Call) -> Value:
    return same_number(call) if call.name == "builtins.float" else FLOAT


@function("builtins.abs")
def magnitude(call: Call) -> Value:
    return NUMBER if isinstance(call.value(0), (Number, Integer)) else Unknown()


@function("builtins.pow")
def power(call: Call) -> Value:
    value = arguments_under(call, "builtins.pow").value("base")
    return NUMBER if isinstance(value, (Number, Integer)) else Unknown()


@function("builtins.bool")
def boolean(call: Call) -> Value:
    known = truth(call.value(0) or FALSE)
    return Unknown() if known is None else (TRUE if known else FALSE)


@function("builtins.min", "builtins.max")
def extreme(call: Call) -> Value:
    items = call.arguments.positional if len(call.arguments.positional) > 1 else elements(call.value(0))
    if items is None and call.name.endswith("max"):
        return _longest(call.value(0))
    if not items or call.arguments.keywords:
        return Unknown()
    if call.name.endswith("min"):
        note_least(call)
    choose = minimum if call.name.endswith("min") else maximum
    if not all(isinstance(item, (Constant, Integer)) for item in items):
        return Unknown()
    result: Size | None = None
    for item in items:
        size = as_size(item)
        if size is None:
            return Unknown()
        result = size if result is None else choose(result, size)
    return Unknown() if result is None else integer(result)


def _longest(given: Value | None) -> Value:
    """Maximum over a list of numbers known to be of one kind."""
    if isinstance(given, ListValue) and isinstance(given.element, Integer):
        if varying(given.element.size, given.axes) is not None:
            return Integer(longest(given.element.size, given.axes))
    return Unknown()


@function("math.prod", "numpy.prod")
def product_(call: Call) -> Value:
    items = elements(call.value(0))
    if items is None or not all(isinstance(item, (Constant, Integer)) for item in items):
        return Unknown()
    sizes = [size for size in map(as_size, items) if size is not None]
    return integer(product(sizes)) if len(sizes) == len(items) else Unknown()


@function("builtins.sum")
def sum_(call: Call) -> Value:
    given = arguments_under(call, "builtins.sum")
    items, start = elements(given.value("iterable")), given.value("start")
    if isinstance(start, ListValue):
        return _joined_lists(given.value("iterable"))
    if items and all(isinstance(item, TensorValue) for item in items):
        added = items[0] if as_size(start) == Size.of(0) else result_of(call, [start, items[0]], Op.ADD)
        for item in items[1:]:
            added = result_of(call, [added, item], Op.ADD)
        return added
    if items is None or not all(isinstance(item, (Constant, Integer)) for item in (start, *items)):
        return Unknown()
    total = Size.of(0)
    for item in (start, *items):
        size = as_size(item)
        if size is None:
            return Unknown()
        total = total + size
    return integer(total)


@function("itertools.chain.from_iterable")
def chain_from(call: Call) -> Value:
    return _joined_lists(call.value(0))


@function("itertools.chain")
def chain(call: Call) -> Value:
    if call.arguments.starred is not None and not call.arguments.positional:
        return _joined_lists(call.arguments.starred)
    lists = [given for given in call.arguments.positional if isinstance(given, ListValue)]
    if not lists or call.arguments.open or len(lists) < len(call.arguments.positional):
        return ListValue(None)
    joined = lists[0].contents
    for other in lists[1:]:
        joined = join_contents(joined, other.contents)
    return ListValue.of(without_length(joined))


def _joined_lists(given: Value | None) -> Value:
    """All items of the lists in a list, one after the other."""
    inner = given.element if isinstance(given, ListValue) else None
    if not (isinstance(given, ListValue) and isinstance(inner, ListValue)):
        return ListValue(None)
    element = without_length(inner.contents).element
    length = inner.length and total(inner.length, given.axes)
    if inner.length is not None and given.length is not None and varying(inner.length, given.axes) is None:
        length = inner.length * given.length
    return ListValue(None, element, length, inner.axes)
