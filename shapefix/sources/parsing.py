"""Parse texts refused by libcst alone: mixed tabs and spaces, and magics in scripts with cells."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Tree = TypeVar("Tree")


def parse_as_python(text: str, parse: Callable[[str], Tree]) -> Tree:
    """Parse a text with libcst; mixtures of tabs and spaces are read as Python reads them.

    So are scripts with cells, `# %%`, that editors run in IPython: their magics do nothing. Every place stays
    where it is. parse is libcst.parse_module or a variant. Raises what it raises for the text.
    """
    import libcst

    try:
        return parse(text)
    except libcst.ParserSyntaxError as error:
        for changed in (_without_tabs(text) if "\t" in text else None, _without_magics(text)):
            if changed is not None:
                with suppress(libcst.ParserSyntaxError):
                    return parse(changed)
        raise error from None


_CELL = re.compile(r"^#\s?%%", re.MULTILINE)
_MAGIC = re.compile(r"^([ \t]*)(%{1,2}[A-Za-z]|!)([^\n]*)$", re.MULTILINE)


def _without_magics(text: str) -> str | None:
    """Return a script with cells, its rows for IPython as long and without effect; None for other texts."""
    if not _CELL.search(text):
        return None
    return _MAGIC.sub(lambda row: f"{row[1]}{'0':<{len(row[2]) + len(row[3])}}", text)


def _without_tabs(text: str) -> str | None:
    """Return a text with a space for each tab in its indentation; every place stays the same.

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
