"""Find the origin of a printed message: an `except` of the project."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shapefix.diagnosis.error_reports import StackFrame
from shapefix.diagnosis.project_frames import ProjectFrame, source, source_files
from shapefix.diagnosis.whole_texts import WholeText
from shapefix.diagnostics import Span
from shapefix.light_dataclasses import dataclass
from shapefix.sources.text import SourceText

_MOST_PARSED = 10_000_000
"""Characters of the files that are parsed."""
_FEWEST_LETTERS = 6
"""The fewest letters of fixed text that identify a template."""


@dataclass(frozen=True)
class PrintingHandler:
    """The printed message of an exception, and the `try` body of its handler as a place."""

    message: str
    frame: ProjectFrame


def printing_handler(line: str, folder: str) -> PrintingHandler | None:
    """Return the handler below a folder for a line of a log, if only one has printed it."""
    found: list[PrintingHandler] = []
    parsed = 0
    for path in source_files(folder):
        whole = source(path)
        if whole is not None and "except" in whole.text and parsed < _MOST_PARSED:
            parsed += len(whole.text)
            found += _handlers(whole, line)
    return found[0] if len(found) == 1 else None


def _handlers(whole: SourceText, line: str) -> Iterator[PrintingHandler]:
    try:
        tree = ast.parse(whole.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    rows = whole.text.split("\n")
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
            template = _template(argument, handler.name)
            found = template.exception_in(line) if template is not None else None
            if found is not None:
                return found
    return None


@dataclass(frozen=True)
class _PrintedTemplate:
    """The fixed texts of an f-string before and after the exception in it.

    is_open is true if another value is at its end.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    is_open: bool

    def exception_in(self, line: str) -> str | None:
        """Return the text of the exception in a line; None for a line of another template."""
        first, last = 0, len(line)
        for text in self.before:
            at = line.find(text, first)
            if at < 0:
                return None
            first = at + len(text)
        for text in reversed(self.after):
            at = line.rfind(text, first + 1, last)
            if at < 0 or (last == len(line) and not self.is_open and not line.endswith(text)):
                return None
            last = at
        return line[first:last].strip() if first < last else None


def _template(value: ast.expr, name: str) -> _PrintedTemplate | None:
    """Return an f-string with the exception in it; None for other values, or too little fixed text."""
    if not isinstance(value, ast.JoinedStr):
        return None
    before: list[str] = []
    after: list[str] = []
    has_error, is_open = False, False
    for part in value.values:
        is_open = not isinstance(part, ast.Constant)
        if isinstance(part, ast.Constant):
            fixed = str(part.value).strip("\n")
            if fixed:
                (after if has_error else before).append(fixed)
        elif isinstance(part, ast.FormattedValue) and _is_exception(part.value, name) and not has_error:
            has_error, is_open = True, False
    if not has_error or sum(map(str.isalpha, "".join((*before, *after)))) < _FEWEST_LETTERS:
        return None
    return _PrintedTemplate(tuple(before), tuple(after), is_open)


def _is_exception(value: ast.expr, name: str) -> bool:
    """Whether an expression is the exception, or its text."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("str", "repr") and value.args:
        value = value.args[0]
    return isinstance(value, ast.Name) and value.id == name
