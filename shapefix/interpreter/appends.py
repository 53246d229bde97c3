"""Lists filled by `append` in a loop: as long as the loop, if each pass adds as many items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import libcst as cst

from shapefix.interpreter.containers import Contents, ListValue, TupleValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.modules import nodes, target_names
from shapefix.interpreter.targets import set_contents
from shapefix.interpreter.values import Value
from shapefix.tensors.polynomials import Size

_LEAVING = (cst.Break, cst.Continue, cst.Return, cst.Try, cst.TryStar)


def appends_of(loop: cst.CSTNode) -> Mapping[str, int]:
    """Lists by name, with the number of items appended by each pass of the loop on every path.

    Those with another use in the body are left out.
    """
    if not isinstance(loop, cst.For) or any(isinstance(node, _LEAVING) for node in nodes(loop.body)):
        return {}
    counts = _of_block(loop.body.body)
    if not counts:
        return {}
    inside = list(nodes(loop.body))
    mentions = Counter(node.value for node in inside if isinstance(node, cst.Name))
    appends = Counter(map(_appended, inside))
    return {name: count for name, count in counts.items() if count > 0 and mentions[name] == appends[name]}


def emptied_lists(loop: cst.For) -> frozenset[str]:
    """Names bound to a new empty list by every pass of the loop, and to nothing else in it."""
    created: list[str] = []
    for line in loop.body.body:
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(small, cst.Assign) and _is_empty_list(small.value):
                created += [each.target.value for each in small.targets if isinstance(each.target, cst.Name)]
    if not created:
        return frozenset()
    targets = (target for node in nodes(loop) for target in _targets(node))
    bound = Counter(name for target in targets for name in target_names(target))
    return frozenset(name for name in created if bound[name] == 1)


def _targets(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    if isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr)):
        yield node.target
    elif isinstance(node, cst.AsName):
        yield node.name


def _is_empty_list(value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.List):
        return not value.elements
    if not isinstance(value, cst.Call) or value.args:
        return False
    return isinstance(value.func, cst.Name) and value.func.value == "list"


def _of_block(block: Sequence[cst.CSTNode]) -> dict[str, int]:
    """Lists by name, with the number of items appended by a block; -1 if paths differ."""
    counts: dict[str, int] = {}
    for statement in block:
        added: Mapping[str, int] = {}
        if isinstance(statement, (cst.SimpleStatementLine, cst.BaseSmallStatement)):
            # `if x: y.append(x)` has no line of its own in its body.
            small = statement.body if isinstance(statement, cst.SimpleStatementLine) else (statement,)
            names = [name for name in map(_appended, small) if name]
            added = {name: names.count(name) for name in names}
        elif isinstance(statement, cst.If):
            added = _of_branches(statement)
        elif isinstance(statement, cst.With):
            added = _of_block(statement.body.body)
        else:
            added = {name: -1 for node in nodes(statement) for name in (_appended(node),) if name}
        for name, count in added.items():
            known = counts.get(name, 0)
            counts[name] = -1 if -1 in (known, count) else known + count
    return counts


def _of_branches(node: cst.If) -> dict[str, int]:
    first = _of_block(node.body.body)
    second: Mapping[str, int] = {}
    if isinstance(node.orelse, cst.If):
        second = _of_branches(node.orelse)
    elif node.orelse is not None:
        second = _of_block(node.orelse.body.body)
    names = first.keys() | second.keys()
    return {name: first.get(name, 0) if first.get(name, 0) == second.get(name, 0) else -1 for name in names}


def _appended(node: cst.CSTNode) -> str:
    """Name of the list in the statement `name.append(item)`; empty for other code."""
    if not isinstance(node, cst.Expr) or not isinstance(node.value, cst.Call) or len(node.value.args) != 1:
        return ""
    called = node.value.func
    if not isinstance(called, cst.Attribute) or called.attr.value != "append":
        return ""
    return called.value.value if isinstance(called.value, cst.Name) else ""


def lengths_after(ev: Evaluator, loop: cst.CSTNode, iterable: Value | None) -> Mapping[str, Size]:
    """Lengths of the lists filled by a loop over the iterable, after it; call before the loop."""
    passes = None
    if isinstance(iterable, ListValue):
        passes = iterable.length
    elif isinstance(iterable, TupleValue):
        passes = Size.of(len(iterable.items))
    if passes is None:
        return {}
    found: dict[str, Size] = {}
    for name, count in ev.frame.module.once(loop, appends_of).items():
        held = ev.frame.scope.names.get(name)
        if isinstance(held, ListValue) and held.length is not None:
            found[name] = held.length + passes * count
    return found


def set_lengths(ev: Evaluator, lengths: Mapping[str, Size]) -> None:
    """Write the lengths of lists after a loop."""
    for name, length in lengths.items():
        held = ev.frame.scope.names.get(name)
        if isinstance(held, ListValue) and held.items is None:
            contents = held.contents
            set_contents(ev, held, Contents(None, contents.element, length, contents.axes))
