"""Operators on constants and symbolic integers; the library handles operators on tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import libcst as cst

from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Arguments, Call, call_library
from shapefix.interpreter.containers import (
    Contents,
    DictValue,
    ListValue,
    TupleValue,
    cells,
    elements,
)
from shapefix.interpreter.dictionaries import merged
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.joins import join_contents, without_length
from shapefix.interpreter.modules import Place
from shapefix.interpreter.names import resolved
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.texts import joined
from shapefix.interpreter.truth import equal
from shapefix.interpreter.values import (
    FLOAT,
    NUMBER,
    TEXT,
    Constant,
    Float,
    Integer,
    LibraryObject,
    Number,
    Text,
    Unknown,
    Value,
    as_size,
    integer,
    is_text,
)
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import floor_divide, modulo

PYTHON: dict[type, Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.Divide: operator.truediv,
    cst.FloorDivide: operator.floordiv,
    cst.Modulo: operator.mod,
    cst.Power: operator.pow,
    cst.BitAnd: operator.and_,
    cst.BitOr: operator.or_,
    cst.BitXor: operator.xor,
    cst.LeftShift: operator.lshift,
    cst.RightShift: operator.rshift,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
}
SIZES: dict[type, Callable[[Size, Size], Size]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.FloorDivide: floor_divide,
    cst.Modulo: modulo,
}
NAMES: dict[type, str] = {
    cst.Add: "add",
    cst.Subtract: "sub",
    cst.Multiply: "mul",
    cst.Divide: "truediv",
    cst.FloorDivide: "floordiv",
    cst.Modulo: "mod",
    cst.Power: "pow",
    cst.MatrixMultiply: "matmul",
    cst.BitAnd: "and",
    cst.BitOr: "or",
    cst.BitXor: "xor",
    cst.LeftShift: "lshift",
    cst.RightShift: "rshift",
    cst.LessThan: "lt",
    cst.LessThanEqual: "le",
    cst.GreaterThan: "gt",
    cst.GreaterThanEqual: "ge",
    cst.Equal: "eq",
    cst.NotEqual: "ne",
}
_ARITHMETIC = frozenset((*SIZES, cst.Divide, cst.Power))
LONGEST = 10_000
"""Maximum length of a folded constant: `"-" * 10**9` occurs in tests."""
MOST_REPEATED = 20_000
"""Maximum number of values in a repeated list, `[[1] * 128] * 64`, whose items are known one by one."""
MOST_BITS = 64
"""Maximum number of bits of a folded int; sizes and indices of tensors need fewer."""
_FACTORS = (2, 3, 4)
"""Exponents of a size; higher ones are not those of areas and volumes."""
HIGHEST_DEGREE = 16
MOST_TERMS = 64


def concerns_tensors(left: Value, right: Value) -> bool:
    """Check whether an operand, and therefore the result, is a tensor."""
    return _is_tensor(left) or _is_tensor(right)


def _is_tensor(value: Value) -> bool:
    if isinstance(value, Unknown) and value.tensor is not None:
        # A value with a shape is an array, not an int.
        return value.tensor.certain or value.tensor.layout is not None
    return isinstance(value, TensorValue)


def operate(ev: Evaluator, kind: type, left: Value, right: Value, node: cst.CSTNode) -> Value:
    """Evaluate the binary operator kind on left and right, at node."""
    left, right = resolved(ev, left), resolved(ev, right)
    if kind is cst.Multiply and any(isinstance(each, (ListValue, TupleValue)) for each in (left, right)):
        if isinstance(left, TensorValue) or isinstance(right, TensorValue):
            # A tensor of one integer is an index: `[0] * n` repeats the list.
            return _sequences(kind, left, right, ev.place(node))
    if concerns_tensors(left, right):
        name = f"operator.{NAMES[kind]}"
        return call_library(ev, name, Arguments([left, right]), node)
    if isinstance(left, Constant) and isinstance(right, Constant):
        return _fold(kind, left.value, right.value)
    made = by_method(ev, kind, left, right, node)
    if made is not None:
        return made
    if isinstance(left, DictValue) and kind is cst.BitOr:
        return merged(ev, left, right)
    if isinstance(left, (TupleValue, ListValue)) or isinstance(right, (TupleValue, ListValue)):
        return _sequences(kind, left, right, ev.place(node))
    if is_text(left) or (isinstance(right, Text) and kind is cst.Add):
        if kind is cst.Add:
            return joined([left, right])
        return TEXT if kind in (cst.Add, cst.Multiply, cst.Modulo) else Unknown()
    if isinstance(left, Number) or isinstance(right, Number):
        return _number_of(kind, left, right)
    if isinstance(left, Integer) or isinstance(right, Integer):
        return _symbolic(kind, left, right)
    if isinstance(left, (Unknown, Constant)) and isinstance(right, (Unknown, Constant)):
        return _symbolic(kind, left, right)
    return Unknown()


def by_method(ev: Evaluator, kind: type, left: Value, right: Value, node: cst.CSTNode) -> Value | None:
    """Result of an operator of a library's class: `__add__` of the left operand, `__radd__` of the right."""
    for owner, other, prefix in ((left, right, ""), (right, left, "r")):
        if isinstance(owner, LibraryObject):
            name = f"__{prefix}{NAMES[kind]}__"
            method = ev.library.method(owner.kind, name)
            if method is not None:
                arguments = Arguments([other])
                return method(Call(ev, f"{owner.kind}.{name}", ev.place(node), arguments, owner))
    return None


def _is_number(value: Value) -> bool:
    return isinstance(value, (Number, Integer)) or (
        isinstance(value, Constant) and isinstance(value.value, (int, float))
    )


def _is_one_number(template: str | bytes, given: Any) -> bool:
    """Check for a lone `%d` with an int: a width in the template could give a text of any length."""
    plain = isinstance(template, str) and template.count("%") == 1 and "%d" in template
    return plain and isinstance(given, int)


def _fold(kind: type, left: Any, right: Any) -> Value:
    function = PYTHON.get(kind)
    if function is None:
        return Unknown()
    if kind in (cst.Power, cst.LeftShift) and not (_is_small(left) and _is_small(right)):
        return Unknown()
    if kind is cst.Add and isinstance(left, (str, bytes)) and isinstance(right, (str, bytes)):
        if len(left) + len(right) > LONGEST:
            return Unknown()
    if kind is cst.Multiply and isinstance(left, (str, bytes)) and isinstance(right, int):
        if len(left) * right > LONGEST:
            return Unknown()
    elif (isinstance(right, (str, bytes)) and kind is cst.Multiply) or (
        isinstance(left, (str, bytes)) and kind is cst.Modulo and not _is_one_number(left, right)
    ):
        return Unknown()
    try:
        result = function(left, right)
    except Exception:
        return Unknown()
    if isinstance(result, int) and result.bit_length() > MOST_BITS:
        return Unknown()
    return Constant(result)


def _is_small(number: Any) -> bool:
    return isinstance(number, (int, float)) and abs(number) <= 64


def _number_of(kind: type, left: Value, right: Value) -> Value:
    """Result of two numbers: a float if one of them is, and for a quotient."""
    if not (_is_number(left) and _is_number(right) and kind in _ARITHMETIC):
        return Unknown()
    is_float = kind is cst.Divide or any(map(_is_float, (left, right)))
    return FLOAT if is_float else NUMBER


def _is_float(value: Value) -> bool:
    return isinstance(value, Float) or (isinstance(value, Constant) and isinstance(value.value, float))


def _symbolic(kind: type, left: Value, right: Value) -> Value:
    if kind is cst.Power and isinstance(right, Constant) and right.value in _FACTORS:
        return reduce(lambda power, _: _symbolic(cst.Multiply, power, left), range(1, int(right.value)), left)
    function = SIZES.get(kind)
    if function is None:
        return _number_of(kind, left, right)
    if isinstance(left, Unknown) and isinstance(right, Unknown) and not (left.hint and right.hint):
        return Unknown()
    a, b = as_size(left), as_size(right)
    if a is None or b is None:
        return Unknown()
    if kind in (cst.FloorDivide, cst.Modulo) and b.value == 0:
        return Unknown()
    if kind is cst.Multiply and _degree(a) + _degree(b) > HIGHEST_DEGREE:
        return Unknown()
    size = function(a, b)
    if len(size.terms) > MOST_TERMS or any(c.bit_length() > MOST_BITS for c in size.terms.values()):
        return Unknown()
    # `i + 1` of an unknown i may as well be a tensor, or a float.
    unsure = isinstance(left, Unknown) or isinstance(right, Unknown)
    return Unknown(str(size), size=size) if unsure else integer(size)


def _degree(size: Size) -> int:
    return max((len(monomial) for monomial in size.terms), default=0)


def _sequences(kind: type, left: Value, right: Value, place: Place) -> Value:
    a, b = elements(left), elements(right)
    if kind is cst.Add:
        if a is not None and b is not None and len(a) + len(b) <= LONGEST:
            return _like(left, a + b)
        if isinstance(left, ListValue) and isinstance(right, ListValue):
            return _concatenated(left.contents, right.contents, place)
    if kind is cst.Multiply:
        repeated, times = (left, right) if isinstance(left, (TupleValue, ListValue)) else (right, left)
        items = elements(repeated)
        if items is not None and isinstance(times, Constant) and isinstance(times.value, int):
            if isinstance(repeated, ListValue) and cells(items) * times.value > MOST_REPEATED:
                element = without_length(repeated.contents).element
                return ListValue(None, element, Size.of(len(items) * times.value))
            if len(items) * times.value <= LONGEST:
                return _like(repeated, items * times.value)
        elif isinstance(repeated, ListValue) and isinstance(times, (Constant, Integer, Unknown, TensorValue)):
            number = as_size(times)
            length = repeated.length * number if repeated.length is not None and number is not None else None
            return ListValue(None, without_length(repeated.contents).element, length)
    return Unknown()


def _concatenated(left: Contents, right: Contents, place: Place) -> Value:
    length = left.length + right.length if left.length is not None and right.length is not None else None
    both = without_length(join_contents(left, right))
    contents = Contents(None, both.element, length, left.axes | right.axes)
    for hook in hooks.concatenate:
        contents = hook(left, contents, place)
    return ListValue.of(contents)


def _like(value: Value, items: tuple[Value, ...]) -> Value:
    return TupleValue(items) if isinstance(value, TupleValue) else ListValue(items)


def negate(ev: Evaluator, kind: type, value: Value, node: cst.CSTNode) -> Value:
    """Evaluate -value, +value or ~value."""
    if concerns_tensors(value, value):
        return call_library(ev, "operator.neg", Arguments([value]), node)
    if isinstance(value, LibraryObject) and kind is cst.Minus:
        method = ev.library.method(value.kind, "__neg__")
        if method is not None:
            return method(Call(ev, f"{value.kind}.__neg__", ev.place(node), Arguments(), value))
    if isinstance(value, Constant):
        try:
            match kind.__name__:
                case "Minus":
                    return Constant(-value.value)
                case "Plus":
                    return Constant(+value.value)
                case "BitInvert":
                    return Constant(~value.value)
        except TypeError:
            return Unknown()
    if isinstance(value, Number):
        return FLOAT if isinstance(value, Float) else NUMBER
    if isinstance(value, Integer) and kind is cst.Minus:
        return Integer(-value.size)
    return Unknown()


def compare(kind: type, left: Value, right: Value) -> bool | None:
    """Evaluate the comparison kind of left and right, neither of them a tensor."""
    if kind is cst.Equal:
        return equal(left, right)
    if kind is cst.NotEqual:
        known = equal(left, right)
        return None if known is None else not known
    if isinstance(left, Constant) and isinstance(right, Constant):
        try:
            return bool(PYTHON[kind](left.value, right.value))
        except TypeError:
            return None
    return None
