"""The makers of repairs by the page of an error, and their edits."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from shapefix.diagnosis.named_places.failures import ExplainedFailure, ParsedFile
from shapefix.diagnostics import Applicability, Edit, Evidence, Fix

Maker = Callable[[ExplainedFailure, Sequence[Evidence]], Fix | None]
MAKERS: dict[str, list[Maker]] = {}
"""The makers for each error page, in the order of their trial."""


def fix_for(*pages: str) -> Callable[[Maker], Maker]:
    """Register a maker of repairs for the errors of some pages."""

    def register(maker: Maker) -> Maker:
        for page in pages:
            MAKERS.setdefault(page, []).append(maker)
        return maker

    return register


def is_place(parsed: ParsedFile, node: ast.expr, place: Evidence) -> bool:
    path, row = parsed.whole.place(node.lineno)
    return path == place.span.path and place.span.row <= row <= place.span.end_row


def end_of(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def place_of(parsed: ParsedFile, row: int, offset: int) -> tuple[int, int]:
    """Return the row and column of an offset in bytes; the row is that in the cell of a notebook."""
    line = parsed.whole.text.split("\n")[row - 1]
    return parsed.whole.place(row)[1], len(line.encode()[:offset].decode(errors="replace")) + 1


def replacement(parsed: ParsedFile, node: ast.expr, code: str, why: str) -> Fix:
    return Fix(Applicability.UNSAFE, why, (Edit(parsed.span(node), code),))


def insertion(
    parsed: ParsedFile, node: ast.expr, code: str, why: str, how: Applicability = Applicability.UNSAFE
) -> Fix:
    """Return the insertion of code after an expression."""
    return Fix(how, why, (Edit(parsed.span(node).end(), code),))
