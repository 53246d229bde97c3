"""Values of large literals, from their summaries."""

from __future__ import annotations

from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.large_literals import LeafSummary, Summary
from shapefix.interpreter.values import FLOAT, NONE, NUMBER, TEXT, Integer, Unknown, Value
from shapefix.tensors.polynomials import Size


def value_of(summary: Summary) -> Value:
    """Value of a literal with this summary."""
    if isinstance(summary, LeafSummary):
        return _leaf_value(summary)
    if summary.bracket == "{:":
        return DictValue({}, closed=False)
    if summary.items is not None and summary.bracket != "{":
        items = tuple(map(value_of, summary.items))
        return TupleValue(items) if summary.bracket == "(" else ListValue(items)
    element = None if summary.element is None else value_of(summary.element)
    length = None if summary.length is None or summary.bracket == "{" else Size.of(summary.length)
    return ListValue(None, element, length)


def _leaf_value(leaf: LeafSummary) -> Value:
    match leaf.kind:
        case "int":
            return Integer(Size.symbol("n", least=min(leaf.least, 1)))
        case "float":
            return FLOAT
        case "number":
            return NUMBER
        case "text":
            return TEXT
        case "none":
            return NONE
    return Unknown()
