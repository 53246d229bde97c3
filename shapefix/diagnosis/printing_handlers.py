"""Find the origin of a printed message: an `except` of the project."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from shapefix.diagnosis.error_reports import StackFrame
from shapefix.diagnosis.project_frames import ProjectFrame, source_files
from shapefix.diagnosis.whole_texts import WholeText
from shapefix.diagnostics import Span
from shapefix.sources.text import Unreadable, read_source

_FEWEST_LETTERS = 6
"""The fewest letters of fixed text that identify a template."""


@dataclass(frozen=True)
class PrintingHandler:
    """The printed message of an exception, and the `try` body of its handler as a place."""

    message: str
    frame: ProjectFrame


def printing_handler(line: str, folder: str) -> PrintingHandler | None:
    """Return the handler below a folder for a line of a log, if only one has printed it."""
    found = [each for path in source_files(folder) for each in _handlers(path, line)]
    return found[0] if len(found) == 1 else None


def _handlers(path: str, line: str) -> Iterator[PrintingHandler]:
    try:
        whole = read_source(path)
        text = whole.text
        tree = ast.parse(text) if "except" in text else ast.Module([], [])
    except (Unreadable, SyntaxError, ValueError, RecursionError):
        return
    rows = text.split("\n")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Try):
            continue
        for handler in node.handlers:
            message = _printed(handler, line)
            if message is not None:
                first, last = node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno
                shown, row = WholeText(whole).place(first)
                frame = StackFrame(shown, row, text=rows[first - 1].strip())
                span = Span(shown, row, 1, row + last - first, 10_000)
                yield PrintingHandler(message, ProjectFrame(frame, span, is_region=True))


def _printed(handler: ast.ExceptHandler, line: str) -> str | None:
    """Return the exception's message in a line, if the handler may have printed it."""
    if handler.name is None:
        return None
    for node in ast.walk(handler):
        if not isinstance(node, ast.Call):
            continue
        for argument in node.args:
            pattern = _pattern(argument, handler.name)
            found = pattern.search(line) if pattern is not None else None
            if found is not None:
                return found["error"].strip()
    return None


def _pattern(template: ast.expr, name: str) -> re.Pattern[str] | None:
    """Compile an f-string with the exception in it; None for other values, or too little fixed text."""
    if not isinstance(template, ast.JoinedStr):
        return None
    parts, letters, has_error = [], 0, False
    for value in template.values:
        if isinstance(value, ast.Constant):
            fixed = str(value.value)
            letters += sum(map(str.isalpha, fixed))
            parts.append(re.escape(fixed.strip("\n")))
        elif isinstance(value, ast.FormattedValue) and _is_exception(value.value, name) and not has_error:
            has_error = True
            parts.append("(?P<error>.+)")
        else:
            parts.append(".*?")
    if not has_error or letters < _FEWEST_LETTERS:
        return None
    return re.compile("".join(parts) + "$")


def _is_exception(value: ast.expr, name: str) -> bool:
    """Whether an expression is the exception, or its text."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("str", "repr") and value.args:
        value = value.args[0]
    return isinstance(value, ast.Name) and value.id == name
