"""The lines of guards in a text: recognize, remove and insert them, and no other byte."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Collection, Iterator, Mapping, Sequence

from shapefix.guards.needs import Need
from shapefix.repair.edits import newline_of

MARKER = "# shapefix: guard"
"""The comment at the end of every guard; an assert with it belongs to shapefix."""
_ROW = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_SILENT = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE})


def rows_of(text: str) -> list[str]:
    """Split a text into its rows, each with its newline."""
    return _ROW.findall(text)


def tokens_of(rows: Sequence[str]) -> Iterator[tokenize.TokenInfo]:
    """Return the tokens of rows, each with any line end. Raises tokenize.TokenError and SyntaxError."""
    plain = "".join(row.rstrip("\r\n") + "\n" for row in rows)
    return tokenize.generate_tokens(io.StringIO(plain).readline)


def guard_rows(text: str) -> list[range]:
    """Return the rows of each guard, counted from 1. Raises tokenize.TokenError and SyntaxError."""
    return list(_guard_rows(rows_of(text)))


def _guard_rows(rows: Sequence[str]) -> Iterator[range]:
    if not any(MARKER in row for row in rows):
        return
    statement: list[tokenize.TokenInfo] = []
    for token in tokens_of(rows):
        if token.type not in _SILENT:
            statement.append(token)
        elif token.type == tokenize.COMMENT and token.string == MARKER and statement:
            first, words = statement[0], [each.string for each in statement]
            # A comment before the closing parenthesis belongs to a part of the statement.
            is_whole = words.count("(") == words.count(")") and ";" not in words
            if first.string == "assert" and is_whole:
                yield range(first.start[0], token.start[0] + 1)
        elif token.type == tokenize.NEWLINE:
            statement = []


def without(text: str, guards: Collection[range]) -> str:
    """Return a text without the rows of some guards."""
    dropped = {row for guard in guards for row in guard}
    return "".join(row for number, row in enumerate(rows_of(text), 1) if number not in dropped)


def first_row(text: str, row: int) -> int | None:
    """Return the row below the guards of a function, given the row of its `def`; None without such a row.

    They go before the first statement after the docstring, and before the comments above it.
    """
    function = next((node for node in _functions(ast.parse(text)) if node.lineno == row), None)
    if function is None:
        return None
    body = function.body
    has_docstring = ast.get_docstring(function, clean=False) is not None
    if len(body) <= has_docstring:
        return None
    before = (body[0].end_lineno or row) if has_docstring else row
    at = _start(body[int(has_docstring)])
    if at <= before:
        return None
    rows = rows_of(text)
    indent = _indent(rows[at - 1])
    if rows[at - 1].strip().startswith("\\") or (not has_docstring and at <= _header_end(function)):
        return None
    while at - 1 > before and rows[at - 2].lstrip().startswith("#") and _indent(rows[at - 2]) == indent:
        at -= 1
    return at


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def _start(node: ast.stmt) -> int:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node.lineno
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _header_end(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the last row of a function's parameters."""
    ends = [each.end_lineno or 0 for each in ast.walk(function.args) if isinstance(each, (ast.arg, ast.expr))]
    if function.returns is not None:
        ends.append(function.returns.end_lineno or 0)
    return max([function.lineno, *ends])


def _indent(row: str) -> str:
    return row[: len(row) - len(row.lstrip(" \t\f"))]


def inserted(text: str, guards: Mapping[int, Sequence[Need]], length: int) -> str:
    """Return a text with guards before some rows; those longer than length are wrapped."""
    newline = newline_of(text)
    made: list[str] = []
    for number, row in enumerate(rows_of(text), 1):
        for need in guards.get(number, ()):
            made += (line + newline for line in written(need, _indent(row), length))
        made.append(row)
    return "".join(made)


def written(need: Need, indent: str, length: int) -> list[str]:
    """Return the rows of a guard, formatted as ruff and black would."""
    message = f'f"{need.message}"'
    whole = f"{indent}assert {need.condition}, {message}"
    if len(whole) <= length:
        return [f"{whole}  {MARKER}"]
    deeper = indent + ("\t" if "\t" in indent else "    ")
    return [f"{indent}assert {need.condition}, (", f"{deeper}{message}", f"{indent})  {MARKER}"]


def same_code(one: str, other: str) -> bool:
    """Check whether two texts differ in the formatting of guards only."""
    if one == other:
        return True
    if without(one, guard_rows(one)) != without(other, guard_rows(other)):
        return False
    return ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))
