"""Lists computed from known items: `[(f"text {i}", i % 3) for i in range(60)]`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import libcst as cst

from shapefix.interpreter.containers import DictValue, ListValue, TupleValue, elements
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.names import peek
from shapefix.interpreter.values import Constant, Reference, Value

_MOST = 256
"""Maximum number of items computed one by one."""
_LONGEST_TEXT = 1_000
_LARGEST = 10**18
Names = Mapping[str, Any]
Compute = Callable[[Names], Any]
_OPERATIONS: dict[type[cst.BaseBinaryOp], Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.FloorDivide: operator.floordiv,
    cst.Modulo: operator.mod,
    cst.Divide: operator.truediv,
}
_COMPARISONS: dict[type[cst.BaseCompOp], Callable[[Any, Any], bool]] = {
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "builtins.int": int,
    "builtins.float": float,
    "builtins.str": str,
    "builtins.len": len,
    "builtins.abs": abs,
    "builtins.min": min,
    "builtins.max": max,
    "builtins.ord": ord,
    "builtins.chr": chr,
}


class _NotComputed(Exception):
    """A value of another kind than numbers, texts, and tuples of them."""


def list_of_items(ev: Evaluator, node: cst.ListComp | cst.GeneratorExp, least: int) -> Value | None:
    """Items of a comprehension over at least so many known items; None for other code."""
    loop = node.for_in
    if loop.ifs or loop.inner_for_in is not None or loop.asynchronous is not None:
        return None
    names = _targets(loop.target)
    if names is None:
        return None
    compute = _compiled(ev, node.elt, names)
    given = _items(ev, loop.iter) if compute is not None else None
    if compute is None or given is None or not least < len(given) <= _MOST:
        return None
    try:
        return ListValue(tuple(_as_value(compute(_bound(names, item))) for item in given))
    except (_NotComputed, ArithmeticError, TypeError, ValueError, LookupError):
        return None


def dictionary_of_items(ev: Evaluator, node: cst.DictComp, least: int) -> DictValue | None:
    """Dictionary computed from at least so many known items; None for other code."""
    loop = node.for_in
    if loop.ifs or loop.inner_for_in is not None or loop.asynchronous is not None:
        return None
    names = _targets(loop.target)
    compute = None if names is None else _all(ev, (node.key, node.value), names, 0)
    given = _items(ev, loop.iter) if compute is not None else None
    if names is None or compute is None or given is None or not least < len(given) <= _MOST:
        return None
    key, value = compute
    try:
        pairs = [(key(bound), value(bound)) for bound in (_bound(names, item) for item in given)]
        made = DictValue({each: _as_value(result) for each, result in pairs})
    except (_NotComputed, ArithmeticError, TypeError, ValueError, LookupError):
        return None
    made.written = dict.fromkeys(made.fields, ev.place(node.key))
    return made


def _targets(node: cst.BaseExpression) -> tuple[str, ...] | None:
    """Names bound by a loop: one, or several to be unpacked."""
    if isinstance(node, cst.Name):
        return (node.value,)
    if not isinstance(node, cst.Tuple):
        return None
    names = [each.value.value for each in node.elements if isinstance(each.value, cst.Name)]
    return tuple(names) if 1 < len(names) == len(node.elements) else None


def _bound(names: tuple[str, ...], item: Any) -> Names:
    if len(names) == 1:
        return {names[0]: item}
    if not isinstance(item, tuple) or len(item) != len(names):
        raise _NotComputed
    return dict(zip(names, item, strict=True))


def _items(ev: Evaluator, node: cst.BaseExpression) -> Sequence[Any] | None:
    """Python values looped over: a range, or a list of known ones."""
    if isinstance(node, cst.Call):
        bounds = [_known(ev, argument) for argument in _arguments(node) or ()]
        if _is_builtin(ev, node.func, "range") and bounds and all(type(bound) is int for bound in bounds):
            return range(*bounds) if len(bounds) <= 3 and bounds[2:] != [0] else None
        if _is_builtin(ev, node.func, "enumerate") and len(node.args) == 1:
            inner = _items(ev, node.args[0].value)
            return None if inner is None or len(inner) > _MOST else tuple(enumerate(inner))
        return None
    if isinstance(node, cst.SimpleString):
        return node.evaluated_value if isinstance(node.evaluated_value, str) else None
    try:
        return _all_items(peek(ev, node)) if isinstance(node, (cst.Name, cst.Attribute)) else None
    except _NotComputed:
        return None


def _arguments(node: cst.Call) -> list[cst.BaseExpression] | None:
    """Arguments of a call by position; None for other forms."""
    if any(each.star or each.keyword is not None for each in node.args):
        return None
    return [each.value for each in node.args]


def _is_builtin(ev: Evaluator, node: cst.BaseExpression, name: str) -> bool:
    if not isinstance(node, cst.Name) or node.value != name:
        return False
    found = peek(ev, node)
    return isinstance(found, Reference) and found.name == f"builtins.{name}"


def _known(ev: Evaluator, node: cst.BaseExpression) -> Any:
    """Number of a literal, a variable, or a sum of them; None for other code."""
    compute = _compiled(ev, node, ())
    try:
        return None if compute is None else compute({})
    except (_NotComputed, ArithmeticError, TypeError, ValueError, LookupError):
        return None


def _compiled(
    ev: Evaluator, node: cst.BaseExpression, names: Sequence[str], depth: int = 0
) -> Compute | None:
    """Function of the names of a loop; None for code besides numbers, texts, tuples and operators."""
    if depth > 6:
        return None
    if isinstance(node, cst.Name):
        return _variable(ev, node, names)
    if isinstance(node, (cst.Integer, cst.Float, cst.SimpleString)):
        value = node.evaluated_value
        return (lambda _: value) if isinstance(value, (int, float, str)) else None
    make = _MAKERS.get(type(node))
    return None if make is None else make(ev, node, names, depth + 1)


def _variable(ev: Evaluator, node: cst.Name, names: Sequence[str]) -> Compute | None:
    name = node.value
    if name in names:
        return lambda bound: bound[name]
    try:
        value = _as_python(peek(ev, node))
    except _NotComputed:
        return None
    return lambda _: value


def _all(
    ev: Evaluator, nodes: Sequence[cst.BaseExpression], names: Sequence[str], depth: int
) -> list[Compute] | None:
    compiled = [_compiled(ev, node, names, depth) for node in nodes]
    known = [each for each in compiled if each is not None]
    return known if len(known) == len(nodes) else None


def _binary(ev: Evaluator, node: Any, names: Sequence[str], depth: int) -> Compute | None:
    operate, sides = _OPERATIONS.get(type(node.operator)), _all(ev, (node.left, node.right), names, depth)
    if operate is None or sides is None:
        return None
    left, right = sides
    return lambda bound: _checked(operate, left(bound), right(bound))


def _checked(operate: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    """Result of an operator, for small operands only."""
    for side, factor in ((one, other), (other, one)):
        if isinstance(side, (str, tuple)) and isinstance(factor, int) and len(side) * factor > _LONGEST_TEXT:
            raise _NotComputed
    if operate is operator.mod and isinstance(one, str):
        raise _NotComputed
    made = operate(one, other)
    if isinstance(made, (str, tuple)) and len(made) > _LONGEST_TEXT:
        raise _NotComputed
    if isinstance(made, int) and abs(made) > _LARGEST:
        raise _NotComputed
    return made


def _negated(ev: Evaluator, node: Any, names: Sequence[str], depth: int) -> Compute | None:
    inner = _compiled(ev, node.expression, names, depth)
    if inner is None or not isinstance(node.operator, cst.Minus):
        return None
    return lambda bound: -inner(bound)


def _compared(ev: Evaluator, node: Any, names: Sequence[str], depth: int) -> Compute | None:
    if len(node.comparisons) != 1:
        return None
    compare = _COMPARISONS.get(type(node.comparisons[0].operator))
    sides = _all(ev, (node.left, node.comparisons[0].comparator), names, depth)
    if compare is None or sides is None:
        return None
    left, right = sides
    return lambda bound: compare(left(bound), right(bound))


def _conditional(ev: Evaluator, node: Any, names: Sequence[str], depth: int) -> Compute | None:
    parts = _all(ev, (node.test, node.body, node.orelse), names, depth)
    if parts is None:
        return None
    test, body, other = parts
    return lambda bound: body(bound) if test(bound) else other(bound)


def _subscript(ev: Evaluator, node: Any, names: Sequence[str], depth: int) -> Compute | None:
    if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        return None
    held = node.value
    index = _compiled(ev, node.slice[0].slice.value, names, depth)
    owner = _listed(ev, held, names, depth)
    if index is None or owner is None:
        return None
    return lambda bound: owner(bound)[index(bound)]


def _listed(ev: Evaluator, node: cst.BaseExpression, names: Sequence[str], depth: int) -> Compute | None:
    """List in brackets or in a variable, or another known value.

    Dictionaries are left out: one made of a set has its numbers in another order in each run.
    """
    if isinstance(node, cst.List):
        return _tuple(ev, node, names, depth)
    if isinstance(node, cst.Name) and node.value not in names:
        found = peek(ev, node)
        try:
            if isinstance(found, ListValue):
                items = _all_items(found)
                return lambda _: items
        except _NotComputed:
            return None
    return _compiled(ev, node, names, depth)


def _tuple(ev: Evaluator, node: Any, names: Sequence[str], depth: int) -> Compute | None:
    if any(isinstance(each, cst.StarredElement) for each in node.elements):
        return None
    parts = _all(ev, [each.value for each in node.elements], names, depth)
    return None if parts is None else lambda bound: tuple(part(bound) for part in parts)


def _dictionary(ev: Evaluator, node: cst.Dict, names: Sequence[str], depth: int) -> Compute | None:
    entries = [each for each in node.elements if isinstance(each, cst.DictElement)]
    keys = _all(ev, [each.key for each in entries], (), depth)
    values = _all(ev, [each.value for each in entries], names, depth)
    if len(entries) < len(node.elements) or keys is None or values is None:
        return None
    return lambda bound: {key({}): value(bound) for key, value in zip(keys, values, strict=True)}


def _formatted(ev: Evaluator, node: cst.FormattedString, names: Sequence[str], depth: int) -> Compute | None:
    parts: list[Compute] = []
    for part in node.parts:
        if isinstance(part, cst.FormattedStringText):
            if "\\" in part.value or "{" in part.value or "}" in part.value:
                text = _escaped(part.value)
                if text is None:
                    return None
                parts.append(lambda _, text=text: text)  # type: ignore[misc]
            else:
                parts.append(lambda _, text=part.value: text)  # type: ignore[misc]
            continue
        if not isinstance(part, cst.FormattedStringExpression) or part.format_spec or part.conversion:
            return None
        inner = _compiled(ev, part.expression, names, depth) if part.equal is None else None
        if inner is None:
            return None
        parts.append(lambda bound, inner=inner: str(inner(bound)))  # type: ignore[misc]
    return lambda bound: "".join(part(bound) for part in parts)


def _escaped(text: str) -> str | None:
    """Text of a piece of an f-string with simple escapes; None for others."""
    for code, meant in (("\\t", "\t"), ("\\n", "\n")):
        text = text.replace(code, meant)
    return None if "\\" in text or "{" in text or "}" in text else text


def _called(ev: Evaluator, node: cst.Call, names: Sequence[str], depth: int) -> Compute | None:
    given = _arguments(node)
    if not given or not isinstance(node.func, cst.Name) or node.func.value in names:
        return None
    found = peek(ev, node.func)
    function = _FUNCTIONS.get(found.name) if isinstance(found, Reference) else None
    parts = None if function is None else _all(ev, given, names, depth)
    if function is None or parts is None:
        return None
    return lambda bound: function(*(part(bound) for part in parts))


_MAKERS: dict[type[cst.CSTNode], Callable[[Evaluator, Any, Sequence[str], int], Compute | None]] = {
    cst.BinaryOperation: _binary,
    cst.UnaryOperation: _negated,
    cst.Comparison: _compared,
    cst.IfExp: _conditional,
    cst.Subscript: _subscript,
    cst.Tuple: _tuple,
    cst.Dict: _dictionary,
    cst.FormattedString: _formatted,
    cst.Call: _called,
}


def _as_python(value: Value) -> Any:
    """Python value of a constant, or of a tuple or list of them."""
    if isinstance(value, Constant) and isinstance(value.value, (int, float, str)):
        return value.value
    if not isinstance(value, TupleValue):
        raise _NotComputed
    return tuple(_all_items(value))


def _all_items(value: Value) -> list[Any]:
    """Python values of the items of a list or tuple, or the letters of a text."""
    if isinstance(value, Constant) and isinstance(value.value, str) and len(value.value) <= _MOST:
        return list(value.value)
    items = elements(value)
    if items is None or len(items) > _MOST:
        raise _NotComputed
    return [_as_python(item) for item in items]


def _as_value(made: Any) -> Value:
    if isinstance(made, (int, float, str)):
        return Constant(made)
    if isinstance(made, tuple):
        return TupleValue(tuple(map(_as_value, made)))
    if isinstance(made, dict):
        return DictValue({key: _as_value(value) for key, value in made.items()})
    raise _NotComputed
