"""Variables and attributes written by callbacks: functions passed on, and called at unknown moments.

A forward hook fills a list while a model runs, a thread while the code goes on. What such a list holds when
it is read is not known: the code around it wrote only a part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.modules import Module, children, nodes
from shapefix.interpreter.values import Constant, Unknown, Value
from shapefix.light_dataclasses import dataclass

_DEFINED = re.compile(r"\bdef\s+(\w+)")
_NOT_CALLED = re.compile(r"(?<!\bdef )\b[A-Za-z_]\w*\b(?!\s*[(\w])")
_LAMBDA = re.compile(r"\blambda\b[^\n]*\.\w+\(")
_CHANGING = frozenset({
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popleft", "remove",
    "setdefault", "update",
})  # fmt: skip
"""Methods of lists, sets and dictionaries changing them."""


@dataclass(frozen=True, slots=True)
class CallbackWrites:
    """Names written by the callbacks of a file: changed containers, and assigned names."""

    changed: frozenset[str] = frozenset()
    assigned: frozenset[str] = frozenset()
    changed_attributes: frozenset[str] = frozenset()
    assigned_attributes: frozenset[str] = frozenset()


_NONE = CallbackWrites()


def weakened(ev: Evaluator, name: str, value: Value, *, is_attribute: bool) -> Value:
    """Value for a name or an attribute, without the facts open to callbacks.

    A list has unknown items, a dictionary further keys, and a constant becomes unknown.
    """
    if not isinstance(value, (ListValue, DictValue, Constant)):
        return value
    writes = ev.frames[-1].module.derived(callback_writes)
    if writes is _NONE:
        return value
    changed = writes.changed_attributes if is_attribute else writes.changed
    assigned = writes.assigned_attributes if is_attribute else writes.assigned
    if name in assigned:
        return Unknown(name)
    if name in changed and isinstance(value, ListValue):
        return ListValue(None, axes=value.axes)
    if name in changed and isinstance(value, DictValue):
        value.closed = False
    return value


def callback_writes(module: Module) -> CallbackWrites:
    """Names written by functions of a file passed on as values instead of being called."""
    defined = set(_DEFINED.findall(module.text))
    is_needed = not defined.isdisjoint(_NOT_CALLED.findall(module.text)) or _LAMBDA.search(module.text)
    return _found(module.tree) if is_needed else _NONE


def _found(tree: cst.Module) -> CallbackWrites:
    functions: dict[str, list[cst.FunctionDef]] = {}
    callbacks: list[cst.FunctionDef | cst.Lambda] = []
    passed: set[str] = set()
    pending: list[cst.CSTNode] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, cst.FunctionDef):
            functions.setdefault(node.name.value, []).append(node)
            pending += [node.params, node.body]
        elif isinstance(node, cst.Call):
            pending += [arg.value for arg in node.args]
            if isinstance(node.func, cst.Attribute):
                pending.append(node.func.value)
            elif not isinstance(node.func, (cst.Name, cst.Lambda)):
                pending.append(node.func)
        elif isinstance(node, cst.Name):
            passed.add(node.value)
        elif isinstance(node, cst.Attribute):
            pending.append(node.value)
            if isinstance(node.value, cst.Name):
                passed.add(node.attr.value)
        elif isinstance(node, cst.Assign):
            pending.append(node.value)
            pending += [each.target for each in node.targets if not isinstance(each.target, cst.Name)]
        else:
            if isinstance(node, cst.Lambda):
                callbacks.append(node)
            pending += [each for each in children(node) if not isinstance(each, cst.Decorator)]
    callbacks += [each for name in sorted(passed) for each in functions.get(name, ())]
    called = {name for each in callbacks for name in _methods_called(each)} - passed
    callbacks += [each for name in sorted(called) for each in functions.get(name, ())]
    found = [_writes_of(each) for each in callbacks]
    return (
        CallbackWrites(*(frozenset().union(*each) for each in zip(*found, strict=True))) if found else _NONE
    )


def _methods_called(function: cst.FunctionDef | cst.Lambda) -> Iterator[str]:
    """The methods of `self` called by a function."""
    for node in nodes(function.body):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and _is_self(node.func.value):
            yield node.func.attr.value


def _is_self(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name) and node.value == "self"


def _writes_of(function: cst.FunctionDef | cst.Lambda) -> tuple[set[str], set[str], set[str], set[str]]:
    """Names and attributes changed and assigned by one function, other than its own variables."""
    changed: set[str] = set()
    changed_attributes: set[str] = set()
    assigned_attributes: set[str] = set()
    bound: set[str] = {each.name.value for each in nodes(function.params) if isinstance(each, cst.Param)}
    shared: set[str] = set()
    for node in nodes(function.body):
        targets: list[cst.BaseExpression] = []
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            if node.func.attr.value in _CHANGING:
                _note(node.func.value, changed, changed_attributes)
        elif isinstance(node, (cst.Global, cst.Nonlocal)):
            shared |= {each.name.value for each in node.names}
        elif isinstance(node, cst.Assign):
            targets = [each.target for each in node.targets]
        elif isinstance(node, (cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr)):
            targets = [node.target]
        elif isinstance(node, cst.FunctionDef):
            bound.add(node.name.value)
        while targets:
            target = targets.pop()
            if isinstance(target, (cst.Tuple, cst.List)):
                targets += [each.value for each in target.elements]
            elif isinstance(target, cst.Subscript):
                _note(target.value, changed, changed_attributes)
            elif isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name):
                assigned_attributes.add(target.attr.value)
            elif isinstance(target, cst.Name):
                bound.add(target.value)
    return changed - (bound - shared), shared & bound, changed_attributes, assigned_attributes


def _note(owner: cst.CSTNode, names: set[str], attributes: set[str]) -> None:
    if isinstance(owner, cst.Name):
        names.add(owner.value)
    elif isinstance(owner, cst.Attribute):
        attributes.add(owner.attr.value)
