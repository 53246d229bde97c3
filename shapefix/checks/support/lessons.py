"""Lessons and templates: announced errors, and code left to the reader."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from shapefix.checks.support.syntax import enclosing, enclosing_function
from shapefix.diagnostics import Diagnostic
from shapefix.domains.devices import DeviceMismatch
from shapefix.interpreter.events import Event, OpRejected
from shapefix.interpreter.modules import Module, Place
from shapefix.sources.text import rows_of

_ANNOUNCED = re.compile(
    r"\b(?:(?:raise|throw|give|cause|produce|trigger|yield|get)s?|(?:result|lead)(?:s|ing)? (?:in|to))\b"
    r".{0,30}\b(?:error|exception)\b"
    r"|\b(?:will|would|should|does|do|is going to|are going to)(?: not|n't)? (?:fail|crash|error|break)\b"
    r"|\b(?:won't|wont|doesn't|don't|will not|would not|does not|do not|can't|cannot) work\b"
    r"|^\W*(?:an? )?(?:error|fails|crashes)\b(?! (?:is|of|rate|term|function|between))"
    r"|\b(?:Runtime|Value|Type|Index|Attribute|Key)Error\b",
    re.IGNORECASE,
)
"""A comment that announces an exception; `# compute the error` does not."""
_TO_FILL_IN = re.compile(
    r"\b(?:your (?:code|implementation|answer)|code here|fill (?:this )?in|(?:insert|write|add) code"
    r"|implement (?:this|me|here|it)|complete (?:this|the) (?:function|code|method|line)s?"
    r"|to-?do:? *(?:implement|complete|fill|write|your|student))\b",
    re.IGNORECASE,
)
_FILLED_UNTIL = re.compile(r"\bend (?:of )?(?:your )?(?:code|solution|answer)\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"^(?:pass|\.\.\.|raise NotImplementedError\b.*|[\w.]+ *= *(?:None|\.\.\.))$")
_EXPORTED = re.compile(r"^# (?:In\[[\d ]*\]|%%)", re.MULTILINE)
"""The beginning of a cell in a notebook that was exported as a script."""


def reason_of_lesson(event: Event, found: Diagnostic) -> str:
    """Return why a text is likely to show an exception, or to be unfinished; "" without a sign of it."""
    if found.error is None:
        return ""
    row = _announcing_row(event.place)
    if row:
        return f"the comment in line {row} announces an exception"
    if _is_bare(event):
        return "the cell only shows a result: its author has seen the exception"
    for place in (event.place, *event.calls):
        row = next(_holes(place), 0)
        if row:
            return f"the code has a part to fill in at line {row}"
    return ""


def _announcing_row(place: Place) -> int:
    """The row of a comment beside a statement, or directly above it, about an exception; 0 without one."""
    lines = rows_of(place.module.text)
    span = place.span
    for row in (span.row, span.end_row):
        if row <= len(lines) and _ANNOUNCED.search(_comment(lines[row - 1])):
            return row
    row = span.row - 1
    while row and lines[row - 1].strip().startswith("#"):
        if _ANNOUNCED.search(_comment(lines[row - 1])):
            return row
        row -= 1
    return 0


def _comment(line: str) -> str:
    """Return the comment of a line; "" for a `#` in a string."""
    start = line.find("#")
    text = line[start + 1 :] if start >= 0 else ""
    is_in_text = line[:start].count('"') % 2 or line[:start].count("'") % 2
    return "" if is_in_text else text.strip()


def _is_bare(event: Event) -> bool:
    """Whether an exported notebook computes something only to show it: `a + b`, in a line of its own."""
    if event.calls or not isinstance(event, (OpRejected, DeviceMismatch)) or event.layer is not None:
        return False
    if enclosing_function(event.place) is not None or not _EXPORTED.search(event.place.module.text):
        return False
    around = enclosing(event.place.module, event.place.node)
    return any(isinstance(each, cst.Expr) and each.value is event.place.node for each in around)


def _holes(place: Place) -> Iterator[int]:
    """Yield the rows above a place, in its function, with a part to fill in."""
    function = enclosing_function(place)
    if function is None:
        return
    lines = rows_of(place.module.text)
    first, last = place.module.span(function).row, _last_row(place.module, function)
    for row in range(first, place.span.row):
        mark = _comment(lines[row - 1])
        if mark and _TO_FILL_IN.search(mark) and not _is_filled(lines[row:last]):
            yield row


def _last_row(module: Module, function: cst.FunctionDef) -> int:
    span = module.span(function)
    return span.end_row or span.row


def _is_filled(after: list[str]) -> bool:
    """Whether code follows a mark at once, or comes before the mark of the end."""
    end = next((at for at, line in enumerate(after) if _FILLED_UNTIL.search(_comment(line))), None)
    block = after[:end] if end is not None else after[:1]
    code = [line.partition("#")[0].strip() for line in block]
    return any(line and not _PLACEHOLDER.match(line) for line in code)
