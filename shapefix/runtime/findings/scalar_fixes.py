"""The fix for the index in `loss.data[0]`, valid before torch 0.4."""

from __future__ import annotations

import ast

from shapefix.diagnostics import Applicability, Edit, Fix
from shapefix.runtime.findings.constructor_fixes import ReadText
from shapefix.runtime.findings.failing_code import expression, failing_row
from shapefix.runtime.observations import RaisedException

_MESSAGE = "invalid index of a 0-dim tensor"


def scalar_fixes(failure: RaisedException, read: ReadText) -> tuple[Fix, ...]:
    """The fix to take the number of a tensor without dimensions by `item()`."""
    if failure.type != "IndexError" or _MESSAGE not in failure.message:
        return ()
    found = failing_row(failure, read)
    node = None if found is None else expression(found[0])
    if found is None or not isinstance(node, ast.Subscript):
        return ()
    if not isinstance(node.slice, ast.Constant) or node.slice.value not in (0, -1):
        return ()
    tensor = node.value
    if isinstance(tensor, ast.Attribute) and tensor.attr == "data":
        tensor = tensor.value
    new = f"{ast.get_source_segment(found[0], tensor)}.item()"
    return (Fix(Applicability.UNSAFE, f"use `{new}`", (Edit(failure.stack[0], new),)),)
