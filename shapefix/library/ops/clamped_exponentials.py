"""Exponentials cut off at a number: larger values become indistinguishable."""

from __future__ import annotations

import math

import libcst as cst

from shapefix.domains.exponentials import ClampedExp, Exponentials
from shapefix.interpreter.calls import Call
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.interpreter.values import FLOAT, Constant, Float, Unknown, Value
from shapefix.library.signatures import arguments_of
from shapefix.tensors.ops import Op

CLAMPS = frozenset({"clamp", "clip", "clamp_max"})


def exponential(call: Call) -> Value:
    """Result of `math.exp(x)`: a number known to be an exponential; numpy's may be an array."""
    made = Float() if call.name == "math.exp" else Unknown()
    call.ev.state[Exponentials].computed_at[id(made)] = made, call.place
    node = call.place.node
    if isinstance(node, cst.Call) and node.args:
        bound = _bound_of_least(call, node.args[0].value)
        if bound is not None:
            _note(call, call.place, bound)
    return made


def same_number(call: Call) -> Value:
    """Result of `float(x)`."""
    place = exponent_of(call, call.value(0))
    if place is None:
        return FLOAT
    made = Float()
    call.ev.state[Exponentials].computed_at[id(made)] = made, place
    return made


def _bound_of_least(call: Call, node: cst.BaseExpression) -> float | None:
    """Upper bound of `exp(min(x, 10))`."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name) or node.func.value != "min":
        return None
    if len(node.args) != 2:
        return None
    for given in node.args:
        bound = _number(call.ev.evaluate(given.value))
        if bound is not None:
            return math.exp(min(bound, 700))
    return None


def note_least(call: Call) -> None:
    """Report `min(ppl, 10000)` for an exponential ppl."""
    given = call.arguments.positional
    if len(given) != 2:
        return
    for value, other in (given, given[::-1]):
        bound = _number(other)
        place = exponent_of(call, value)
        if bound is not None and place is not None:
            _note(call, place, bound)


def note_clamped(call: Call, tensor: TensorValue) -> None:
    """Report `ppl.clamp(max=10000)` for an exponential ppl."""
    bound = _number(arguments_of(call).value("max"))
    place = exponent_of(call, tensor)
    if bound is not None and place is not None:
        _note(call, place, bound)


def note_item(call: Call, tensor: TensorValue, made: Value) -> Value:
    """Record that the number of a tensor is an exponential if the tensor is one; return the number."""
    place = exponent_of(call, tensor)
    if place is not None:
        call.ev.state[Exponentials].computed_at[id(made)] = made, place
    return made


def exponent_of(call: Call, value: Value | None) -> Place | None:
    """Place of the computation of an exponential; None for any other value."""
    if isinstance(value, TensorValue):
        return _computed_at(value.origin)
    found = call.ev.state[Exponentials].computed_at.get(id(value))
    return found[1] if found is not None else None


def _computed_at(step: LayoutStep | None) -> Place | None:
    if step is None or not isinstance(step.place.node, cst.Call):
        return None
    function = step.place.node.func
    last = function.attr.value if isinstance(function, cst.Attribute) else ""
    return step.place if step.op is Op.EXP and last == "exp" else None


def _note(call: Call, exponential: Place, bound: float) -> None:
    call.ev.emit(ClampedExp(call.place, call.ev.calls, exponential, bound))


def _number(value: Value | None) -> float | None:
    is_number = isinstance(value, Constant) and type(value.value) in (int, float)
    return float(value.value) if is_number and isinstance(value, Constant) else None
