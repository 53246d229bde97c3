"""Explain syntax errors in Python's own words."""

from __future__ import annotations

import ast
import re
import warnings

from shapefix.diagnostics import Failure
from shapefix.engine.parse_limits import check_parse_limits
from shapefix.sources.parsing import parse_as_python
from shapefix.sources.text import SourceText


def python_failure(source: SourceText) -> Failure | None:
    """Return the syntax error reported by this Python for a text; None if the text is valid."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source.text, source.path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        return _explained(error, source)
    except (RecursionError, MemoryError, ValueError, OverflowError):
        # Too deep, or a number with too many digits: the parser reports it.
        return None
    return None


_ASYNC = re.compile(r"\(\s*(?:.*,\s*)?async\s*=")


def _explained(error: SyntaxError, source: SourceText) -> Failure:
    """Return Python's words for a syntax error, or its cause if they do not name it."""
    rows = source.text.splitlines()
    marks = [number for number, row in enumerate(rows, 1) if row.startswith(("<<<<<<< ", ">>>>>>> "))]
    if len(marks) > 1:
        return Failure(source.path, "cannot be parsed: a merge conflict is not resolved", marks[0], 1)
    message = error.msg
    if error.lineno and error.lineno <= len(rows) and _ASYNC.search(rows[error.lineno - 1]):
        message = "`async` is a keyword since Python 3.7; the argument of torch is now `non_blocking`"
    return Failure(source.path, f"cannot be parsed: {message}", error.lineno or None, error.offset or None)


def syntax_failure(source: SourceText) -> Failure | None:
    """Return why a text cannot be parsed; None if it can.

    libcst also accepts the syntax of later Python versions, and magics in a script with cells are left out.
    Raises Unreadable for texts beyond its limits.
    """
    failure = python_failure(source)
    if failure is None:
        return None
    check_parse_limits(source)
    import libcst

    try:
        parse_as_python(source.text, libcst.parse_module)
    except (libcst.ParserSyntaxError, RecursionError):
        return failure
    return None
