"""Explain syntax errors in Python's own words."""

from __future__ import annotations

import ast
import warnings

from shapefix.diagnostics import Failure
from shapefix.engine.parse_limits import check_parse_limits
from shapefix.sources.text import SourceText


def python_failure(source: SourceText) -> Failure | None:
    """Return the syntax error reported by this Python for a text; None if the text is valid."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source.text, source.path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        return Failure(
            source.path, f"cannot be parsed: {error.msg}", error.lineno or None, error.offset or None
        )
    except (RecursionError, MemoryError, ValueError, OverflowError):
        # Too deep, or a number with too many digits: the parser reports it.
        return None
    return None


def syntax_failure(source: SourceText) -> Failure | None:
    """Return why a text cannot be parsed; None if it can.

    libcst also accepts the syntax of later Python versions. Raises Unreadable for texts beyond its limits.
    """
    failure = python_failure(source)
    if failure is None:
        return None
    check_parse_limits(source)
    import libcst

    try:
        libcst.parse_module(source.text)
    except (libcst.ParserSyntaxError, RecursionError):
        return failure
    return None
