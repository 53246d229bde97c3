"""`filter`: fewer rows of the same columns, perhaps of one length afterwards."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

import libcst as cst

from shapefix.domains.raggedness import may_differ
from shapefix.domains.row_counts import unknown_count
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.modules import children
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import BoundMethod, FunctionValue, LibraryObject, Reference, Unknown, Value
from shapefix.library.data.datasets.cells import of_any_numbers
from shapefix.library.data.datasets.formats import PLAIN, formatted
from shapefix.library.data.datasets.mapping import hand_over, run_apart, settings
from shapefix.library.data.datasets.objects import (
    NUM_ROWS,
    ROWS,
    SAMPLE,
    another,
    dataset_method,
    format_of,
    number_of,
    receiver,
    rows_of,
    sample_of,
)

SMALL = 1
"""Comparisons with numbers up to this never select rows of one length."""


@dataset_method("filter")
def filter_(call: Call) -> Value:
    dataset, given = receiver(call), settings(call)
    function, batched = given.value("function"), given.flag("batched")
    rows = rows_of(dataset)
    if format_of(dataset) != PLAIN:
        rows = formatted(rows, format_of(dataset))
    handed = hand_over(rows, given, batched) if batched is not None else None
    if handed is not None:
        run_apart(call, function, handed)
    kept = another(dataset)
    kept.fields[NUM_ROWS] = unknown_count(number_of(dataset))
    tested = _tested(function)
    kept.fields[ROWS] = of_any_numbers(rows_of(dataset), tested)
    kept.fields[SAMPLE] = of_any_numbers(sample_of(dataset), tested)
    if may_even_out(function):
        kept.fields[ROWS] = _of_any_lengths(rows_of(kept))
        kept.fields[SAMPLE] = _of_any_lengths(sample_of(kept))
    return kept


def _tested(function: Value) -> frozenset[str] | None:
    """Return the texts in the function of a filter, the columns it reads among them; None for all."""
    if not isinstance(function, FunctionValue):
        return None
    inside = list(_below(function.node))
    read = [part.slice for node in inside if isinstance(node, cst.Subscript) for part in node.slice]
    if not all(isinstance(part, cst.Index) and isinstance(part.value, cst.SimpleString) for part in read):
        return None
    return frozenset(str(node.evaluated_value) for node in inside if isinstance(node, cst.SimpleString))


def _of_any_lengths(row: DictValue) -> DictValue:
    """Remove differing lengths from a row: the remaining rows may have one length."""
    fields = {name: _of_any_length(cell) for name, cell in row.fields.items()}
    return DictValue(fields, row.closed, row.kind, row.absent, row.written)


def _of_any_length(cell: Value) -> Value:
    if isinstance(cell, ListValue):
        inner = cell.element and _of_any_length(cell.element)
        length = None if may_differ(cell) else cell.length
        return ListValue(cell.items, inner, length, cell.axes) if cell.items is None else cell
    return Unknown() if isinstance(cell, TensorValue) and may_differ(cell) else cell


def may_even_out(function: Value) -> bool:
    """Check whether accepted rows may all have one length, as with `len(x["input_ids"]) == 512`."""
    while isinstance(function, (BoundMethod, LibraryObject)):
        inner = function.function if isinstance(function, BoundMethod) else function.fields.get("target")
        if not isinstance(inner, (FunctionValue, BoundMethod, LibraryObject)):
            return not isinstance(inner, Reference)
        function = inner
    if not isinstance(function, FunctionValue):
        return True
    return any(_may_even_out(node) for node in _below(function.node.body))


def _may_even_out(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Call):
        called = node.func
        if isinstance(called, cst.Attribute):
            return isinstance(called.value, cst.Name) and called.value.value == "self"
        return not (isinstance(called, cst.Name) and hasattr(builtins, called.value))
    if not isinstance(node, cst.Comparison):
        return False
    left = node.left
    for target in node.comparisons:
        if _is_equality(target.operator, left, target.comparator):
            return True
        left = target.comparator
    return False


def _is_equality(operator: cst.BaseCompOp, left: cst.BaseExpression, right: cst.BaseExpression) -> bool:
    """Check for a comparison possibly fixing a length or bounding it from below by the longest one."""
    if isinstance(operator, (cst.NotEqual, cst.Is, cst.IsNot, cst.In, cst.NotIn)):
        return False
    if any(isinstance(side, cst.SimpleString) or _is_small(side) for side in (left, right)):
        return False
    if isinstance(operator, (cst.LessThan, cst.LessThanEqual)):
        return _is_asked(right)
    if isinstance(operator, (cst.GreaterThan, cst.GreaterThanEqual)):
        return _is_asked(left)
    return True


def _is_small(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.UnaryOperation):
        return True
    return isinstance(node, cst.Float) or (
        isinstance(node, cst.Integer) and node.value.isdigit() and int(node.value) <= SMALL
    )


def _is_asked(node: cst.BaseExpression) -> bool:
    """Check for a possible property of the row, as opposed to the value compared with it."""
    return not isinstance(node, (cst.Name, cst.Attribute, cst.Integer))


def _below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in children(node):
        yield from _below(child)
