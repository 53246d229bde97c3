"""Names of values: the variable or the key in an assignment."""

from __future__ import annotations

import libcst as cst

from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.interpreter.modules import Place


def name_of(place: Place) -> str:
    """Return the variable or key assigned the expression at place, or its own code."""
    around = enclosing(place.module, place.node)
    kinds = (cst.Assign, cst.Dict, cst.Arg)
    assigned = next((node for node in reversed(around) if isinstance(node, kinds)), None)
    if isinstance(assigned, cst.Dict):
        for element in assigned.elements:
            if isinstance(element, cst.DictElement) and element.value in around:
                return _key(element.key) or abbreviate(place.code)
    if isinstance(assigned, cst.Assign):
        target = _target(assigned, around)
        if target is not None:
            return named(target) or abbreviate(place.code)
    return abbreviate(place.code)


def named(target: cst.CSTNode) -> str:
    """Return `labels` of `batch["labels"]`, `batch.labels` or `labels[:, 1:]`, or an empty string."""
    if isinstance(target, cst.Name):
        return target.value
    if isinstance(target, cst.Attribute):
        return target.attr.value
    if isinstance(target, cst.Subscript):
        index = target.slice[0].slice if len(target.slice) == 1 else None
        key = _key(index.value) if isinstance(index, cst.Index) else ""
        return key or named(target.value)
    return ""


def _target(assigned: cst.Assign, around: list[cst.CSTNode]) -> cst.CSTNode | None:
    """Return the target of an assignment; for an unpacking, the part for the expression."""
    target = assigned.targets[0].target
    if assigned.value not in around:
        return target
    if not isinstance(target, (cst.Tuple, cst.List)):
        return target
    if isinstance(assigned.value, (cst.Tuple, cst.List)):
        for position, element in enumerate(assigned.value.elements):
            if element.value in around and position < len(target.elements):
                return target.elements[position].value
    return None


def _key(node: cst.CSTNode) -> str:
    if isinstance(node, cst.SimpleString) and isinstance(node.evaluated_value, str):
        return node.evaluated_value
    return ""


def value_at(place: Place) -> cst.BaseExpression | None:
    """Return the value assigned to a key or name at a place, or None for several values."""
    if isinstance(place.node, cst.Arg):
        return place.node.value
    around = enclosing(place.module, place.node)
    kinds = (cst.Assign, cst.DictElement)
    holder = next((node for node in reversed(around) if isinstance(node, kinds)), None)
    if isinstance(holder, cst.Assign) and isinstance(holder.targets[0].target, (cst.Tuple, cst.List)):
        return None
    return holder.value if isinstance(holder, (cst.Assign, cst.DictElement)) else None
