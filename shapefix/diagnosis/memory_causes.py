"""Find the findings about memory in the functions of an out-of-memory error."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from shapefix.diagnosis.causes import Confidence, ErrorCause
from shapefix.diagnosis.project_frames import ProjectFrame
from shapefix.diagnosis.whole_texts import whole_text
from shapefix.diagnostics import Diagnostic, Span
from shapefix.sources.text import Unreadable

_CODES = ("SF701", "SF702", "SF703")
"""The rules about memory that grows with the number of batches."""


def memory_causes(frames: Sequence[ProjectFrame], findings: Iterable[Diagnostic]) -> tuple[ErrorCause, ...]:
    """Return the findings in the functions of the stack, the innermost first; none of them is proved.

    Memory that one line keeps is missing at another one of the same loop.
    """
    found: dict[Span, ErrorCause] = {}
    of_memory = [each for each in findings if each.code in _CODES]
    for frame in reversed(frames):
        if frame.is_missing:
            continue
        function = _function_around(frame.span)
        for each in of_memory:
            places = [each.span, *(step.span for step in each.evidence)]
            if any(place.path == frame.span.path and place.row in function for place in places):
                is_here = any(frame.covers(place) for place in places)
                found.setdefault(each.cause.span, ErrorCause(each, Confidence.LIKELY, is_here))
    return tuple(found.values())


def _function_around(span: Span) -> range:
    """Return the rows of the innermost function around a statement; a file counts as one."""
    try:
        whole = whole_text(span.path)
        tree = ast.parse(whole.text)
    except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
        return range(span.row, span.end_row + 1)
    row = span.row + whole.rows_before
    around = [node for node in _functions(tree) if node.lineno <= row <= (node.end_lineno or 0)]
    innermost = max(around, key=lambda node: node.lineno, default=None)
    first, last = (1, 10**9) if innermost is None else (innermost.lineno, innermost.end_lineno or 0)
    return range(first - whole.rows_before, last - whole.rows_before + 1)


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
