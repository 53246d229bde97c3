"""The code of an expression at an exception."""

from __future__ import annotations

import ast

from shapefix.diagnostics import Span
from shapefix.runtime.findings.constructor_fixes import ReadText
from shapefix.runtime.observations import RaisedException


def failing_row(failure: RaisedException, read: ReadText) -> tuple[str, str] | None:
    """The failing expression and the rest of its row; None if it takes several rows, or cannot be read."""
    if not failure.stack:
        return None
    place = failure.stack[0]
    text = read(place.path)
    rows = [] if text is None else text.splitlines()
    if place.row != place.end_row or place.row > len(rows):
        return None
    row = rows[place.row - 1]
    return row[place.column - 1 : place.end_column - 1], row[place.end_column - 1 :]


def code_at(place: Span, read: ReadText) -> str | None:
    """The code at a place, in one or more rows; None if it cannot be read."""
    text = read(place.path)
    rows = [] if text is None else text.splitlines()[place.row - 1 : place.end_row]
    if len(rows) != place.end_row - place.row + 1:
        return None
    rows[-1] = rows[-1][: place.end_column - 1]
    rows[0] = rows[0][place.column - 1 :]
    return "\n".join(rows)


def expression(code: str) -> ast.expr | None:
    """The syntax tree of an expression; None if the code is not one."""
    try:
        return ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError):
        return None


def part_of(place: Span, code: str, node: ast.expr) -> Span:
    """The place of a part of the code at a place."""
    rows = code.splitlines()
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    ends = []
    for row, offset in ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)):
        characters = len(rows[row - 1].encode()[:offset].decode())
        ends.append((place.row + row - 1, characters + (place.column if row == 1 else 1)))
    (row, column), (end_row, end_column) = ends
    return Span(place.path, row, column, end_row, end_column)
