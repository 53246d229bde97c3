"""What Python itself has to say about a text that is no Python."""

from __future__ import annotations

import ast
import warnings

from shapefix.diagnostics import Failure
from shapefix.engine.parse_limits import refuse_unparsable
from shapefix.sources.text import SourceText


def python_failure(source: SourceText) -> Failure | None:
    """Python's own words on why source is not valid; None where it is, for the Python that runs us."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source.text, source.path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        return Failure(
            source.path, f"cannot be parsed: {error.msg}", error.lineno or None, error.offset or None
        )
    except (RecursionError, MemoryError, ValueError, OverflowError):
        # Too deep, or a number with too many digits: whoever needs the tree will say so.
        return None
    return None


def syntax_failure(source: SourceText) -> Failure | None:
    """Why source cannot be parsed; None where it can.

    A text that the Python we run on does not accept may be written for a later one, which libcst knows.
    Raises Unreadable where asking libcst would be dangerous.
    """
    failure = python_failure(source)
    if failure is None:
        return None
    refuse_unparsable(source)
    import libcst

    try:
        libcst.parse_module(source.text)
    except (libcst.ParserSyntaxError, RecursionError):
        return failure
    return None
