"""What the later iterations of a loop do otherwise than the first one, because of what that one changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import libcst as cst

from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.modules import dotted_name
from shapefix.interpreter.values import (
    Constant,
    DictValue,
    InstanceValue,
    ListValue,
    TensorValue,
    Unknown,
    Value,
)


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a statement in a loop assigns, and all that its value depends on, conditions around it included.

    Names are dotted: `x`, or `self.x`.
    """

    targets: tuple[str, ...]
    reads: frozenset[str]


class Carried:
    """The names that a loop assigns, with what they held before it."""

    def __init__(self, ev: Evaluator, loop: cst.For | cst.While) -> None:
        self._assignments = ev.frame.module.once(loop, _assignments)
        self._before = {name: _facts(_read(ev, name)) for name in _names(self._assignments)}

    def forget(self, ev: Evaluator) -> None:
        """Forget what depends on what the first iteration changed; to be called in the state after it."""
        tainted = {
            name
            for name, before in self._before.items()
            if before != "missing" and _facts(_read(ev, name)) != before
        }
        if not tainted:
            return
        growing = True
        lost: set[str] = set()
        while growing:
            growing = False
            for assignment in self._assignments:
                if assignment.reads.isdisjoint(tainted):
                    continue
                for name in assignment.targets:
                    if name not in lost:
                        lost.add(name)
                        tainted.add(name)
                        growing = True
        for name in lost:
            _forget(ev, name)


def _names(assignments: tuple[Assignment, ...]) -> set[str]:
    return {name for entry in assignments for name in (*entry.targets, *entry.reads)}


def _read(ev: Evaluator, name: str) -> Value | None:
    """What a name, or an attribute of an object of the project, holds; nothing is looked up elsewhere."""
    first, _, attribute = name.partition(".")
    scope = ev.frame.scope.home(first)
    value = scope.names.get(first)
    while value is None and scope.outer is not None:
        scope = scope.outer
        value = scope.names.get(first)
    if not attribute:
        return value
    return value.fields.get(attribute) if isinstance(value, InstanceValue) else None


def _facts(value: Value | None) -> Any:
    """What is known of a value, in a form that can be compared."""
    if value is None:
        return "missing"
    if isinstance(value, Constant):
        return type(value.value), value.value
    if isinstance(value, TensorValue):
        return value.layout, value.dtype, value.contiguous
    if isinstance(value, ListValue):
        return value.fields["items"], value.fields["element"]
    if isinstance(value, DictValue):
        return tuple(value.fields.items())
    return value


def _forget(ev: Evaluator, name: str) -> None:
    value = _read(ev, name)
    if value is None:
        return
    unknown = TensorValue(certain=value.certain) if isinstance(value, TensorValue) else Unknown(name)
    first, _, attribute = name.partition(".")
    if not attribute:
        ev.journal.write(ev.frame.scope.home(first).names, first, unknown)
        return
    owner = _read(ev, first)
    if isinstance(owner, InstanceValue):
        ev.journal.write(owner.fields, attribute, unknown)


def _assignments(loop: cst.For | cst.While) -> tuple[Assignment, ...]:
    conditions = frozenset(_reads(loop.test)) if isinstance(loop, cst.While) else frozenset()
    return tuple(_in_block(loop.body, conditions))


def _in_block(block: cst.BaseSuite, conditions: frozenset[str]) -> Iterator[Assignment]:
    for statement in block.body:
        if isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                yield from _in_small(small, conditions)
        else:
            tests = frozenset(_tests(statement))
            for inner in _blocks(statement):
                yield from _in_block(inner, conditions | tests)
            if isinstance(statement, (cst.For, cst.With)):
                yield Assignment(tuple(_bound(statement)), conditions | tests)
            if tests and _jumps(statement):
                # What stands behind it only runs where it does not jump.
                conditions |= tests


def _in_small(node: cst.BaseSmallStatement, conditions: frozenset[str]) -> Iterator[Assignment]:
    targets: list[cst.CSTNode] = []
    if isinstance(node, cst.Assign):
        targets = [target.target for target in node.targets]
    elif isinstance(node, (cst.AugAssign, cst.AnnAssign)):
        targets = [node.target]
    reads = set(_reads(node))
    names = [name for target in targets for name in _targets(target)]
    names += _walruses(node)
    if isinstance(node, cst.Assign):
        reads -= {name for name in names if not _mentions(node.value, name)}
    if names:
        yield Assignment(tuple(names), conditions | reads)


def _targets(target: cst.CSTNode) -> Iterator[str]:
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _targets(element.value)
    elif isinstance(target, (cst.Name, cst.Attribute)):
        yield dotted_name(target)


def _mentions(node: cst.CSTNode, name: str) -> bool:
    return any(read == name for read in _reads(node))


def _reads(node: cst.CSTNode) -> Iterator[str]:
    """Every name in node, and every attribute of a name."""
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, cst.Attribute):
        if isinstance(node.value, cst.Name):
            yield f"{node.value.value}.{node.attr.value}"
        yield from _reads(node.value)
    elif isinstance(node, (cst.BaseExpression, cst.BaseSmallStatement)) or type(node).__module__.startswith(
        "libcst._nodes.expression"
    ):
        for child in node.children:
            yield from _reads(child)
    elif isinstance(node, cst.AssignTarget):
        yield from _reads(node.target)


def _walruses(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, cst.NamedExpr) and isinstance(node.target, cst.Name):
        yield node.target.value
    for child in node.children:
        yield from _walruses(child)


def _tests(statement: cst.CSTNode) -> Iterator[str]:
    """What decides whether, and for what, the blocks of a compound statement run."""
    if isinstance(statement, (cst.If, cst.While)):
        yield from _reads(statement.test)
        if isinstance(statement, cst.If) and isinstance(statement.orelse, cst.If):
            yield from _tests(statement.orelse)
    elif isinstance(statement, cst.For):
        yield from _reads(statement.iter)
    elif isinstance(statement, cst.Match):
        yield from _reads(statement.subject)
    elif isinstance(statement, cst.With):
        for item in statement.items:
            yield from _reads(item.item)


def _bound(statement: cst.For | cst.With) -> Iterator[str]:
    if isinstance(statement, cst.For):
        yield from _targets(statement.target)
        return
    for item in statement.items:
        if item.asname is not None:
            yield from _targets(item.asname.name)


def _blocks(statement: cst.CSTNode) -> Iterator[cst.BaseSuite]:
    """The blocks of a compound statement that run with it; those of definitions do not."""
    if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
        return
    for child in statement.children:
        if isinstance(child, cst.BaseSuite):
            yield child
        elif isinstance(child, (cst.If, cst.Else, cst.ExceptHandler, cst.Finally, cst.MatchCase)):
            yield from _blocks(child)


def _jumps(node: cst.CSTNode) -> bool:
    if isinstance(node, (cst.Break, cst.Continue, cst.Return, cst.Raise)):
        return True
    if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.BaseExpression)):
        return False
    return any(_jumps(child) for child in node.children)
