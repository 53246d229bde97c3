"""Uses of a value as input ids after a write into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import libcst as cst

from shapefix.checks.support.bound_names import value_at
from shapefix.checks.support.syntax import is_after
from shapefix.domains.masks import Holder
from shapefix.interpreter.modules import Place, children
from shapefix.light_dataclasses import dataclass

INPUTS = "input_ids"
_OF_ALL = frozenset({"items", "values", "to", "data", "copy"})
_OF_ONE = frozenset({"pop", "get", "setdefault"})


def is_read_as_input(holder: Holder) -> bool:
    """Whether the code after the write passes on the value of the holder as `input_ids`.

    The value has that key in a dictionary that is used later, or is assigned to the key or passed as the
    argument of that name.
    """
    if holder.key is not None:
        return holder.key == INPUTS and _is_read(holder, _reads_key)
    return _is_read(holder, _is_given)


def is_argument(holder: Holder) -> bool:
    """Whether the code after the write passes the variable to a call, as any argument."""
    return holder.key is None and _is_read(holder, lambda path: isinstance(path[-2], cst.Arg))


def _is_read(holder: Holder, counts: Callable[[list[cst.CSTNode]], bool]) -> bool:
    for path in _mentions(holder.body, holder.name):
        is_later = is_after(holder.at, path[-1])
        binding = _binding(path)
        if binding is not None and (is_later or _is_within(holder.at, binding)):
            return False
        if is_later and counts(path):
            return True
    return False


def _binding(path: list[cst.CSTNode]) -> cst.Assign | None:
    """Return the assignment of a mention of a variable, alone or in a tuple of targets."""
    for node, parent in pairwise(reversed(path[:-1])):
        if isinstance(node, cst.AssignTarget):
            return parent if isinstance(parent, cst.Assign) else None
        if not isinstance(node, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
            return None
    return None


def _is_within(here: Place, assignment: cst.Assign) -> bool:
    """Whether the assigned expression runs here: `labels = mask(labels)` with a write in `mask`."""
    span, whole = here.span, here.module.span(assignment.value)
    begin, end = (whole.row, whole.column), (whole.end_row, whole.end_column)
    return begin <= (span.row, span.column) and (span.end_row, span.end_column) <= end


@dataclass(frozen=True)
class Bound:
    """The assignment of a name or a key, and the assigned expression."""

    place: Place
    value: cst.BaseExpression


def last_bound(holder: Holder) -> Bound | None:
    """Return the last assignment of the holder before the write; None if it is ambiguous."""
    if holder.key is not None:
        value = value_at(holder.set_at) if holder.set_at is not None else None
        return Bound(holder.set_at, value) if holder.set_at is not None and value is not None else None
    found: Bound | None = None
    for path in _mentions(holder.body, holder.name):
        value = _assigned(path)
        if value is not None and not is_after(holder.at, path[-1]):
            found = Bound(Place(holder.at.module, value), value)
    return found


def _assigned(path: list[cst.CSTNode]) -> cst.BaseExpression | None:
    """Return the expression assigned to a mention of a variable, alone or in a tuple."""
    if len(path) > 2 and isinstance(path[-2], cst.AssignTarget) and isinstance(path[-3], cst.Assign):
        return path[-3].value
    if len(path) < 5 or not isinstance(path[-4], cst.AssignTarget) or not isinstance(path[-5], cst.Assign):
        return None
    names, values = path[-3], path[-5].value
    if not isinstance(names, cst.Tuple) or not isinstance(values, cst.Tuple):
        return None
    positions = [position for position, element in enumerate(names.elements) if element is path[-2]]
    if len(names.elements) != len(values.elements) or not positions:
        return None
    return values.elements[positions[0]].value


def _mentions(body: cst.CSTNode, name: str) -> Iterator[list[cst.CSTNode]]:
    """Yield the path from body to each mention of a variable, in code order."""
    yield from _below([body], name)


def _below(path: list[cst.CSTNode], name: str) -> Iterator[list[cst.CSTNode]]:
    node = path[-1]
    if isinstance(node, cst.Name):
        if node.value == name:
            yield path
        return
    parts = list(children(node))
    if isinstance(node, cst.Assign):
        # The value is read before anything is bound.
        parts = [node.value, *node.targets]
    elif isinstance(node, (cst.Arg, cst.Attribute)):
        parts = [node.value]
    elif isinstance(node, cst.Parameters):
        parts = []
    for part in parts:
        yield from _below([*path, part], name)


def _reads_key(path: list[cst.CSTNode]) -> bool:
    """Whether a mention of a dictionary reads its input ids, or all items."""
    name, parent = path[-1], path[-2]
    around = path[-3] if len(path) > 2 else None
    if isinstance(parent, cst.Subscript) and parent.value is name:
        return _constant(parent.slice[0].slice) == INPUTS and not isinstance(around, cst.AssignTarget)
    if isinstance(parent, cst.Attribute):
        if parent.attr.value in _OF_ONE and isinstance(around, cst.Call) and around.args:
            return _text(around.args[0].value) == INPUTS
        return parent.attr.value == INPUTS or parent.attr.value in _OF_ALL
    is_deleted = any(isinstance(node, cst.Del) for node in path)
    return not is_deleted and not isinstance(parent, (cst.Comparison, cst.ComparisonTarget))


def _is_given(path: list[cst.CSTNode]) -> bool:
    """Whether a mention of a variable passes it on as the input ids."""
    name, parent = path[-1], path[-2]
    if isinstance(parent, cst.Arg):
        return parent.keyword is not None and parent.keyword.value == INPUTS
    if isinstance(parent, cst.DictElement):
        return parent.value is name and _text(parent.key) == INPUTS
    if isinstance(parent, cst.Assign) and parent.value is name:
        target = parent.targets[0].target
        return isinstance(target, cst.Subscript) and _constant(target.slice[0].slice) == INPUTS
    return False


def _constant(index: cst.BaseSlice) -> str:
    return _text(index.value) if isinstance(index, cst.Index) else ""


def _text(node: cst.CSTNode) -> str:
    value = node.evaluated_value if isinstance(node, cst.SimpleString) else ""
    return value if isinstance(value, str) else ""
