"""The fix for `.next()` of an iterator, a method of Python 2."""

from __future__ import annotations

import ast
import re

from shapefix.diagnostics import Applicability, Edit, Fix, Span
from shapefix.runtime.findings.constructor_fixes import ReadText
from shapefix.runtime.findings.failing_code import expression, failing_row
from shapefix.runtime.observations import RaisedException

_MISSING = re.compile(r"'\w*(?:[Ii]ter|iterator|generator)' object has no attribute 'next'")


def next_fixes(failure: RaisedException, read: ReadText) -> tuple[Fix, ...]:
    """The fix to call the function `next`."""
    if failure.type != "AttributeError" or not _MISSING.search(failure.message):
        return ()
    found = failing_row(failure, read)
    if found is None:
        return ()
    place = failure.stack[0]
    (written, after), end = found, place.end_column
    if written.endswith(".next") and after.startswith("()"):
        written, end = f"{written}()", end + 2
    node = expression(written)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.args:
        return ()
    iterator = ast.get_source_segment(written, node.func.value)
    span = Span(place.path, place.row, place.column, place.row, end)
    return (Fix(Applicability.UNSAFE, "call the function `next`", (Edit(span, f"next({iterator})"),)),)
