"""The fix for `async=`, an argument of torch before `async` was a keyword of Python."""

from __future__ import annotations

import io
import token
import tokenize
from itertools import pairwise

from shapefix.diagnostics import Applicability, Edit, Fix, Span
from shapefix.engine.syntax_errors import python_failure
from shapefix.runtime.findings.constructor_fixes import ReadText
from shapefix.runtime.observations import RaisedException
from shapefix.sources.text import SourceText

_NEW = "non_blocking"


def syntax_text(failure: RaisedException, read: ReadText) -> str:
    """The cause of a syntax error as text, if Python does not name it."""
    if failure.type != "SyntaxError" or not failure.stack:
        return ""
    path = failure.stack[0].path
    text = read(path)
    found = None if text is None else python_failure(SourceText(path, text))
    if found is None or found.row != failure.stack[0].row:
        return ""
    cause = found.message.partition(": ")[2]
    return "" if cause in failure.message else f": {cause}"


def async_fixes(failure: RaisedException, read: ReadText) -> tuple[Fix, ...]:
    """The fix to rename each `async=` of a file with invalid syntax."""
    if failure.type != "SyntaxError" or not failure.stack:
        return ()
    path = failure.stack[0].path
    text = read(path)
    places = [] if text is None else _places(path, text)
    if not any(each.row == failure.stack[0].row for each in places):
        return ()
    edits = tuple(Edit(each, _NEW) for each in places)
    return (Fix(Applicability.UNSAFE, f"use the new name of the argument: `{_NEW}`", edits),)


def _places(path: str, text: str) -> list[Span]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return []
    pairs = pairwise(tokens)
    return [
        Span(path, name.start[0], name.start[1] + 1, name.end[0], name.end[1] + 1)
        for name, after in pairs
        if name.string == "async" and after.type == token.OP and after.string == "="
    ]
