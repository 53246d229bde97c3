"""Keyword arguments of calls: set them in the text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from shapefix.guards.lines import rows_of
from shapefix.guards.memory.rows import RowEdits, indent_of

KeywordCode = Callable[[int | None], str]
"""The code of a keyword, by the integer that the call passes so far, None without one."""


class ComputedKeyword(Exception):
    """A keyword to set is passed already, and is not a constant."""


def add_keyword(
    edits: RowEdits, rows: Sequence[str], call: ast.Call, code: str, mark: Callable[[str], str]
) -> None:
    """Add a keyword to a call: in a row of its own if the others have rows of their own.

    mark returns the new row with its comment, if it gets one.
    """
    first = call.keywords[0] if call.keywords else None
    if first is not None and first.lineno > call.lineno:
        indent = indent_of(rows, first.lineno)
        if len(indent.encode()) == first.col_offset:
            edits.insert_above(first.lineno, mark(f"{indent}{code},"))
            return
    row, end = call.end_lineno or call.lineno, call.end_col_offset or 0
    data = edits.replaced.get(row, rows[row - 1]).rstrip("\r\n").encode()
    before = data[: end - 1].rstrip()
    is_open = before.endswith((b",", b"("))
    added = code if is_open else f", {code}"
    edits.replace(row, mark((data[: end - 1] + added.encode() + data[end - 1 :]).decode()))


def with_keywords(
    text: str, is_wanted: Callable[[str], bool], settings: Mapping[str, KeywordCode]
) -> str | None:
    """Return a text with keywords set in the calls of some functions; None without such a call.

    Raises ComputedKeyword.
    """
    rows = rows_of(text)
    found = False
    for number in range(len(list(_calls(text, is_wanted)))):
        # One call after the other: the edits of one move the next.
        call = list(_calls(text, is_wanted))[number]
        found = True
        for name, code in settings.items():
            edits = RowEdits()
            rows = rows_of(text)
            call = list(_calls(text, is_wanted))[number]
            given = next((each.value for each in call.keywords if each.arg == name), None)
            if given is None:
                if any(each.arg is None for each in call.keywords):
                    raise ComputedKeyword(name)
                add_keyword(edits, rows, call, f"{name}={code(None)}", lambda row: row)
            elif isinstance(given, ast.Constant):
                value = given.value if type(given.value) is int else None
                data = rows[given.lineno - 1].rstrip("\r\n").encode()
                new = data[: given.col_offset] + code(value).encode() + data[given.end_col_offset :]
                edits.replace(given.lineno, new.decode())
            else:
                raise ComputedKeyword(name)
            text = edits.applied(text)
    return text if found else None


def _calls(text: str, is_wanted: Callable[[str], bool]) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and is_wanted(ast.unparse(node.func))
    ]
