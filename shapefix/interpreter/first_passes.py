"""Run code skipped by the first pass of a loop (`if i > 0:`) in the state of a later pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import add, eq, floordiv, ge, gt, le, lt, mod, mul, ne, sub

import libcst as cst

from shapefix.interpreter.evaluator import Evaluator, Loop
from shapefix.interpreter.forgotten_names import forget_items, forget_name
from shapefix.interpreter.loop_assignments import ITEMS, RETURNED, Assignment, assignments
from shapefix.interpreter.modules import nodes, parents
from shapefix.interpreter.names import peek
from shapefix.interpreter.values import Constant, Reference, Value

_COMPARISONS: dict[type[cst.BaseCompOp], Callable[[int, int], bool]] = {
    cst.Equal: eq,
    cst.NotEqual: ne,
    cst.LessThan: lt,
    cst.LessThanEqual: le,
    cst.GreaterThan: gt,
    cst.GreaterThanEqual: ge,
}
_ARITHMETIC: dict[type[cst.BaseBinaryOp], Callable[[int, int], int]] = {
    cst.Add: add,
    cst.Subtract: sub,
    cst.Multiply: mul,
    cst.FloorDivide: floordiv,
    cst.Modulo: mod,
}
_PASSED_ON = frozenset({"tqdm", "track"})
"""Functions that pass on the items of their first argument."""


def first_numbers(ev: Evaluator, node: cst.For) -> dict[str, int]:
    """Counters of a `for` loop over `range` or `enumerate`, with their values in the first pass."""
    call = node.iter
    while isinstance(call, cst.Call) and call.args and _last_name(call.func) in _PASSED_ON:
        call = call.args[0].value
    called = peek(ev, call.func) if isinstance(call, cst.Call) and isinstance(call.func, cst.Name) else None
    if not isinstance(call, cst.Call) or not isinstance(called, Reference):
        return {}
    given = [argument for argument in call.args if not argument.star]
    if called.name == "builtins.range" and isinstance(node.target, cst.Name):
        start = 0 if len(given) == 1 else _literal(given[0].value if given else None)
        return {} if start is None else {node.target.value: start}
    if called.name == "builtins.enumerate" and isinstance(node.target, cst.Tuple) and given:
        counter = node.target.elements[0].value
        start = 0 if len(given) == 1 else _literal(given[1].value)
        return {counter.value: start} if isinstance(counter, cst.Name) and start is not None else {}
    return {}


def counted_by_hand(ev: Evaluator, node: cst.For | cst.While) -> frozenset[str]:
    """Variables with a known number, changed by the body of a loop only by `name += 1`."""
    names = ev.frame.scope.names
    return frozenset(
        name for name in ev.frame.module.once(node, _only_added_to) if _is_number(names.get(name))
    )


def _only_added_to(loop: cst.For | cst.While) -> frozenset[str]:
    """Variables changed by a loop only by `name += 1`."""
    changes: dict[str, bool] = {}
    for entry in assignments(loop):
        match entry.node:
            case cst.AugAssign(operator=cst.AddAssign(), value=cst.Integer()):
                counts = True
            case _:
                counts = False
        for name in entry.targets:
            changes[name] = counts and changes.get(name, True)
    return frozenset(name for name, counts in changes.items() if counts)


def _is_number(value: Value | None) -> bool:
    return isinstance(value, Constant) and type(value.value) is int


def is_counted(ev: Evaluator, test: cst.BaseExpression) -> bool:
    """Check whether a condition reads a variable counted up by one of the loops around it."""
    counted = [loop.counted for loop in ev.frame.loops if loop.counted]
    if not counted:
        return False
    read = {node.value for node in nodes(test) if isinstance(node, cst.Name)}
    return any(not names.isdisjoint(read) for names in counted)


def _last_name(node: cst.BaseExpression) -> str:
    last = node.attr if isinstance(node, cst.Attribute) else node
    return last.value if isinstance(last, cst.Name) else ""


def _literal(node: cst.BaseExpression | None) -> int | None:
    return int(node.value, 0) if isinstance(node, cst.Integer) else None


def loop_decided(ev: Evaluator, test: cst.BaseExpression) -> tuple[Loop, bool] | None:
    """Innermost loop with a counter deciding a test in the first pass, and the value of the test there."""
    for loop in reversed(ev.frame.loops):
        if loop.first or loop.counted:
            known = _truth(ev, test, {**_numbers(ev, loop), **loop.first})
            if known is not None:
                return loop, known
    return None


def _numbers(ev: Evaluator, loop: Loop) -> dict[str, int]:
    """Variables counted up by a loop, with their values now."""
    held = {name: ev.frame.scope.names.get(name) for name in loop.counted}
    return {
        name: value.value
        for name, value in held.items()
        if isinstance(value, Constant) and isinstance(value.value, int)
    }


def forget_first_pass(ev: Evaluator, loop: Loop, test: cst.BaseExpression) -> None:
    """Forget all values at a test for later passes of the loop, if they depend on the pass before."""
    stale = _stale(ev, loop, test)
    for name in stale:
        if name.endswith(ITEMS):
            forget_items(ev, name.removesuffix(ITEMS))
        else:
            forget_name(ev, name)


def _stale(ev: Evaluator, loop: Loop, test: cst.BaseExpression) -> set[str]:
    """Names with values from an earlier pass at a test."""
    every = ev.frame.module.once(loop.node, assignments)
    stale = {name for entry in every for name in entry.targets} - {RETURNED} - loop.bound
    around = _path_from(ev.frame.module.once(loop.node, parents), test)
    for entry in _before(loop, every, test):
        carried = not entry.reads.isdisjoint(stale)
        for name in entry.targets:
            if carried and name not in loop.bound:
                stale.add(name)
            elif not carried and id(entry.block) in around and not name.endswith(ITEMS):
                stale.difference_update((name, name + ITEMS))
    return stale - {RETURNED}


def _path_from(parents: Mapping[cst.CSTNode, cst.CSTNode], node: cst.CSTNode) -> set[int]:
    """Ids of the nodes from a root to a node below it, given the parents of all nodes below the root."""
    path = {id(node)}
    while node in parents:
        node = parents[node]
        path.add(id(node))
    return path


def _before(loop: Loop, every: tuple[Assignment, ...], test: cst.BaseExpression) -> Iterator[Assignment]:
    """Assignments in the body of a loop above a test in it."""
    above: set[int] = set()
    for node in nodes(loop.node.body):
        if node is test:
            break
        above.add(id(node))
    yield from (entry for entry in every if id(entry.node) in above)


def _truth(ev: Evaluator, test: cst.BaseExpression, first: dict[str, int]) -> bool | None:
    """Value of a condition in the first pass; None unless a counter decides it."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = _truth(ev, test.expression, first)
        return None if inner is None else not inner
    if isinstance(test, cst.BooleanOperation):
        stops = isinstance(test.operator, cst.Or)
        sides = [_truth(ev, side, first) for side in (test.left, test.right)]
        if stops in sides:
            return stops
        return None if None in sides else not stops
    counts = any(isinstance(node, cst.Name) and node.value in first for node in nodes(test))
    if not counts:
        return None
    if isinstance(test, cst.Comparison):
        compare = _COMPARISONS.get(type(test.comparisons[0].operator)) if len(test.comparisons) == 1 else None
        left, right = _number(ev, test.left, first), _number(ev, test.comparisons[0].comparator, first)
        return None if compare is None or left is None or right is None else compare(left, right)
    number = _number(ev, test, first)
    return None if number is None else bool(number)


def _number(ev: Evaluator, node: cst.BaseExpression, first: dict[str, int]) -> int | None:
    """Value of an expression of counters and known integers in the first pass."""
    if isinstance(node, cst.Name):
        if node.value in first:
            return first[node.value]
        value: Value = peek(ev, node)
        known = value.value if isinstance(value, Constant) else None
        return known if isinstance(known, int) else None
    if isinstance(node, cst.Integer):
        return int(node.value, 0)
    if not isinstance(node, cst.BinaryOperation):
        return None
    left, right = _number(ev, node.left, first), _number(ev, node.right, first)
    operate = _ARITHMETIC.get(type(node.operator))
    divides = isinstance(node.operator, (cst.Modulo, cst.FloorDivide))
    if divides and left == 0:
        # Zero is a multiple of everything.
        return 0
    if operate is None or left is None or right is None or (divides and right == 0):
        return None
    return operate(left, right)
