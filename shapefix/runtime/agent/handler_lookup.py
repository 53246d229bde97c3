"""Find the `except` of a swallowed exception, in the user's source."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ..protocol import UserPlace


def find_handler(names: list[str], places: list[UserPlace]) -> UserPlace | None:
    """The nearest handler around places, innermost first, catching an exception without reraising it.

    names are those of the exception's class and its bases.
    """
    for where in places:
        tree = _parsed(where["file"])
        if tree is None:
            continue
        around = sorted(_around(tree, where["row"]), key=lambda node: -int(node.lineno))
        for node in around:
            found = _catching(node, names)
            if found is not None:
                return UserPlace(
                    file=where["file"],
                    row=found.lineno,
                    column=found.col_offset + 1,
                    end_row=found.lineno,
                    end_column=found.col_offset + (7 if isinstance(found, ast.ExceptHandler) else 5),
                    function=where["function"],
                )
    return None


@lru_cache(maxsize=64)
def _parsed(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _around(tree: ast.Module, row: int) -> Iterator[Any]:
    """The `try` and `with` statements with a row in their body."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Try, ast.With)) and node.body:
            last = node.body[-1].end_lineno or node.body[-1].lineno
            if node.body[0].lineno <= row <= last:
                yield node


def _catching(node: Any, names: list[str]) -> Any:
    """The handler of a `try`, or the `with suppress(...)`, catching and keeping an exception."""
    if isinstance(node, ast.With):
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and _last(call.func) == "suppress":
                if any(_last(each) in names for each in call.args):
                    return node
        return None
    for each in node.handlers:
        if not _catches(each.type, names):
            continue
        return None if isinstance(each.body[-1], ast.Raise) else each
    return None


def _catches(expression: ast.expr | None, names: list[str]) -> bool:
    if expression is None:
        return True
    if isinstance(expression, ast.Tuple):
        return any(_last(each) in names for each in expression.elts)
    return _last(expression) in names


def _last(expression: ast.expr) -> str:
    if isinstance(expression, ast.Attribute):
        return expression.attr
    return expression.id if isinstance(expression, ast.Name) else ""
