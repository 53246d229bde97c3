"""Indentation of mixed tabs and spaces, for parsers stricter about it than Python."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Callable
from typing import TypeVar

Tree = TypeVar("Tree")


def parse_as_python(text: str, parse: Callable[[str], Tree]) -> Tree:
    """Parse a text with libcst; mixtures of tabs and spaces are read as Python reads them.

    parse is libcst.parse_module or a variant. Raises what it raises for the text.
    """
    import libcst

    try:
        return parse(text)
    except libcst.ParserSyntaxError:
        spaced = _without_tabs(text) if "\t" in text else None
        if spaced is None:
            raise
        return parse(spaced)


def _without_tabs(text: str) -> str | None:
    """Return a text with a space for each tab in its indentation, so that every place stays where it is.

    None if Python would read it as another program, or cannot read the text.
    """
    try:
        starts = {token.start for token in tokenize.generate_tokens(io.StringIO(text).readline)}
        rows = text.splitlines(keepends=True)
        for number, row in enumerate(rows, 1):
            code = row.lstrip(" \t")
            width = len(row) - len(code)
            # Other rows continue a string.
            if (number, width) in starts:
                rows[number - 1] = " " * width + code
        changed = "".join(rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            is_same = ast.dump(ast.parse(text)) == ast.dump(ast.parse(changed))
    except (tokenize.TokenError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return changed if is_same else None
