"""The code after a short repair."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import lru_cache
from operator import itemgetter
from typing import Literal, TypeAlias

from shapefix.diagnostics import Edit, Fix
from shapefix.light_dataclasses import dataclass

LONGEST = 80
"""The largest length of the code; longer calls are shortened to the changed argument."""

_Node: TypeAlias = ast.expr | ast.stmt | ast.keyword
_Position: TypeAlias = tuple[int, int]
"""A row, and a column in code points; both count from 1."""
_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


@dataclass(frozen=True)
class FixedCode:
    """The new code of a repair; of a new line also its place, before or after the first edit."""

    code: str
    inserted: Literal["", "before", "after"] = ""


def fixed_code(fix: Fix, text: str) -> FixedCode | None:
    """Return the new code of a repair in one place of a text; None if its message says it better.

    It is the innermost call around the edits, the statement without one, or the line that they insert.
    """
    if len({edit.span.path for edit in fix.edits}) != 1:
        return None
    edits = [_as_argument(edit) for edit in sorted(fix.edits, key=lambda edit: edit.span)]
    if any("\n" in edit.content for edit in edits):
        return _inserted(edits[0]) if len(edits) == 1 else None
    if not any(edit.content for edit in edits) or any(edit.span.row != edit.span.end_row for edit in edits):
        return None
    source = _parsed(text)
    if source is None:
        return None
    node = _around(source, edits)
    if node is None:
        return None
    code = _edited(source, node, edits)
    if code is None and isinstance(node, ast.Call):
        code = _shortened(source, node, edits)
    return None if code is None or _is_bare(code) else FixedCode(code)


def _around(source: _Source, edits: Sequence[Edit]) -> _Node | None:
    """Return the innermost call with more code than the edits replace, or the statement without one."""
    first, last = edits[0], edits[-1].span
    start, end = (first.span.row, first.span.column), (last.end_row, last.end_column)
    around = source.around(start, end)
    statement = next((node for node in reversed(around) if isinstance(node, _STATEMENTS)), None)
    if statement is not None and source.place(statement)[0] == start:
        return statement
    for node in reversed(around):
        place = source.place(node)
        # A new argument, unlike a new method, is inside of the call.
        is_after = first.content.startswith(",") and place[1] == start
        if isinstance(node, ast.Call) and place != (start, end) and not is_after:
            return node
    return statement


def _is_bare(code: str) -> bool:
    """Whether the code is only `raise` or `pass`, so that it says less than a sentence."""
    try:
        (statement,) = ast.parse(code).body
    except (SyntaxError, ValueError):
        return False
    return isinstance(statement, (ast.Raise, ast.Pass))


def _as_argument(edit: Edit) -> Edit:
    """Return the edit without the line break before a new argument."""
    return replace(edit, content=re.sub(r"^,\s+", ", ", edit.content))


def _inserted(edit: Edit) -> FixedCode | None:
    """Return one new line before or after a row."""
    span, code = edit.span, edit.content.strip().removesuffix(",")
    if "\n" in code or len(code) > LONGEST or span.start() != span.end() or _is_bare(code):
        return None
    return FixedCode(code, "after" if edit.content.startswith("\n") else "before")


@dataclass(frozen=True)
class _Source:
    """A parsed text and its rows."""

    tree: ast.Module
    rows: Sequence[str]
    parts: dict[ast.AST, list[tuple[_Position, _Position, _Node]]] = field(default_factory=dict)

    def around(self, start: _Position, end: _Position) -> list[_Node]:
        """Return the statements and expressions around a stretch, outermost first."""
        found: list[_Node] = []
        inner = self._part(self.tree, start, end)
        while inner is not None:
            found.append(inner)
            inner = self._part(inner, start, end)
        return found

    def _part(self, node: ast.AST, start: _Position, end: _Position) -> _Node | None:
        """Return the part of a node around a stretch; parts do not overlap."""
        if node not in self.parts:
            self.parts[node] = sorted(
                ((*self.place(part), part) for part in _parts(node)), key=itemgetter(0, 1)
            )
        parts = self.parts[node]
        at = bisect_right(parts, start, key=itemgetter(0)) - 1
        return parts[at][2] if at >= 0 and end <= parts[at][1] else None

    def place(self, node: _Node) -> tuple[_Position, _Position]:
        """Return the first and the last position of a node."""
        end_row, end_offset = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        start = node.lineno, self._column(node.lineno, node.col_offset)
        return start, (end_row, self._column(end_row, end_offset))

    def _column(self, row: int, offset: int) -> int:
        code = self.rows[row - 1]
        return (offset if code.isascii() else len(code.encode()[:offset].decode(errors="ignore"))) + 1


def _parts(node: ast.AST) -> Iterator[_Node]:
    """Yield the nodes directly below a node; those without a place give way to their parts.

    Positions in f-strings are not reliable.
    """
    if isinstance(node, ast.JoinedStr):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.expr, ast.stmt, ast.keyword)):
            yield child
        else:
            yield from _parts(child)


@lru_cache(maxsize=4)
def _parsed(text: str) -> _Source | None:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return _Source(tree, re.split(r"\r\n|\r|\n", text))


def _edited(source: _Source, node: _Node, edits: Sequence[Edit]) -> str | None:
    """Return the code of a node with the edits in it; None if it is long, or not in one row."""
    (row, start), (end_row, end) = source.place(node)
    if row != end_row:
        return None
    code = source.rows[row - 1]
    for edit in reversed(edits):
        first, last = edit.span.column, edit.span.end_column
        code = code[: first - 1] + edit.content + code[last - 1 :]
        end += len(edit.content) - (last - first)
    code = code[start - 1 : end - 1]
    return code if len(code) <= LONGEST else None


def _shortened(source: _Source, call: ast.Call, edits: Sequence[Edit]) -> str | None:
    """Return a call with its changed argument, and `…` for the others: `DataLoader(…, drop_last=True)`."""
    name = _edited(source, call.func, ())
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    arguments = sorted(given, key=source.place)
    (edit, *others) = edits
    if name is None or others or not arguments:
        return None
    for number, argument in enumerate(arguments):
        first, last = source.place(argument)
        if not first <= (edit.span.row, edit.span.column) <= last:
            continue
        if edit.content.startswith(",") and last == (edit.span.row, edit.span.column):
            code, before, after = edit.content[1:].strip(), True, number < len(arguments) - 1
        else:
            changed = _edited(source, argument, edits)
            if changed is None:
                return None
            code, before, after = changed, number > 0, number < len(arguments) - 1
        code = f"{name}({'…, ' if before else ''}{code}{', …' if after else ''})"
        return code if len(code) <= LONGEST else None
    return None
