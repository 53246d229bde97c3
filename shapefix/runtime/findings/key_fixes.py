"""Fixes for a missing key of a mapping, from its keys in a run."""

from __future__ import annotations

import ast
import difflib

from shapefix.diagnostics import Applicability, Edit, Fix, Span
from shapefix.runtime.findings.constructor_fixes import ReadText
from shapefix.runtime.findings.failing_code import expression, failing_row
from shapefix.runtime.observations import RaisedException

_SHOWN, _ALIKE = 8, 0.75


def keys_text(failure: RaisedException) -> str:
    """The keys of the mapping, for an exception about a missing one."""
    missing = failure.details.get("missing_key")
    if missing is None:
        return ""
    keys = missing["keys"]
    if not keys:
        return f"; `{missing['name']}` is empty"
    more = ", …" if len(keys) > _SHOWN else ""
    return f"; `{missing['name']}` has {', '.join(map(repr, keys[:_SHOWN]))}{more}"


def key_fixes(failure: RaisedException, read: ReadText) -> tuple[Fix, ...]:
    """The fix to use the one nearly equal key of the mapping."""
    missing = failure.details.get("missing_key")
    if missing is None:
        return ()
    alike = difflib.get_close_matches(missing["key"], missing["keys"], 2, _ALIKE)
    found = failing_row(failure, read)
    if len(alike) != 1 or found is None:
        return ()
    place, (written, _) = failure.stack[0], found
    node = expression(written)
    key = node.slice if isinstance(node, ast.Subscript) else None
    if not isinstance(key, ast.Constant) or key.value != missing["key"] or key.end_col_offset is None:
        return ()
    start = len(written.encode()[: key.col_offset].decode())
    end = len(written.encode()[: key.end_col_offset].decode())
    quote = written[end - 1]
    span = Span(place.path, place.row, place.column + start, place.row, place.column + end)
    new = f"{quote}{alike[0]}{quote}"
    return (Fix(Applicability.UNSAFE, f"use the key that is there: {new}", (Edit(span, new),)),)
