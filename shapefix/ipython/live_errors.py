"""Turn an exception of this process into the report and the facts for its diagnosis."""

from __future__ import annotations

import linecache
import textwrap
import traceback
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType
from typing import Protocol

from shapefix.diagnosis.diagnose import last_error
from shapefix.diagnosis.error_reports import ErrorReport, StackFrame
from shapefix.diagnosis.live_facts import LiveFacts
from shapefix.diagnosis.project_frames import MEASURED, compiled_row, is_installed, statement_rows
from shapefix.diagnosis.tracebacks import read_reports
from shapefix.ipython.live_values import failed_layer, values_of
from shapefix.light_dataclasses import dataclass
from shapefix.sources.notebooks import python_cell

_MOST_LINKED = 50
_REPEATED = "Traceback (most recent call last)"
"""Words in the message of an exception that repeats the one of a worker process."""


class LiveCells(Protocol):
    """The cells of a session, by the file names of their code."""

    def path(self, filename: str) -> str | None:
        """Return the path of a cell in its notebook; None for other files."""

    def text(self, filename: str) -> str | None:
        """Return the text of a cell as its frames count its rows; None for other files."""


@dataclass(frozen=True)
class LiveError:
    """An exception as a report, and the facts for each exception of its chain, in that order."""

    report: ErrorReport
    facts: tuple[LiveFacts, ...]


def live_error(error: BaseException, cells: LiveCells) -> LiveError:
    """Return the report of an exception, with the facts of its frames."""
    linked = list(_linked(error))
    first, *earlier = (_single(each, cells) for each in linked)
    facts = [fact for each in (first, *earlier) for fact in each.facts]
    report = replace(first.report, earlier=tuple(each.report for each in reversed(earlier)))
    return LiveError(report, tuple(facts))


def _linked(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, then those before it, latest first, as Python prints them."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen and len(seen) < _MOST_LINKED:
        seen.add(id(each))
        yield each
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)


def _single(error: BaseException, cells: LiveCells) -> LiveError:
    """Return one exception, with the members of a group."""
    message = _message(error)
    if _REPEATED in message:
        # The stack of the worker is a text in the message.
        lines = "".join(traceback.format_exception(error, chain=False)).split("\n")
        read = last_error(read_reports(lines))
        if read is not None:
            frames = tuple(replace(each, path=cells.path(each.path) or each.path) for each in read.frames)
            return LiveError(replace(read, frames=frames, earlier=()), (LiveFacts(),))
    members = []
    if isinstance(error, BaseExceptionGroup):
        members = [live_error(each, cells) for each in error.exceptions[:_MOST_LINKED]]
    kind = type(error)
    is_plain = kind.__module__ in ("builtins", "__main__")
    report = ErrorReport(
        kind.__qualname__ if is_plain else f"{kind.__module__}.{kind.__qualname__}",
        message,
        _frames(error, cells),
        members=tuple(each.report for each in members),
    )
    return LiveError(report, (_facts(error, cells), *(fact for each in members for fact in each.facts)))


def _message(error: BaseException) -> str:
    """Return the message of an exception, as Python prints it."""
    if isinstance(error, SyntaxError):
        return error.msg or ""
    try:
        return str(error).strip()
    except Exception:
        return ""


def _frames(error: BaseException, cells: LiveCells) -> tuple[StackFrame, ...]:
    """Return the frames of an exception, without those of IPython before the first cell."""
    found: list[StackFrame] = []
    for frame, row in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        cell = cells.path(name)
        if not found and cell is None and is_installed(name) and not name.startswith("<"):
            continue
        text = linecache.getline(name, row, frame.f_globals).strip()
        found.append(StackFrame(cell or name, row, frame.f_code.co_name, text))
    return tuple(found)


def _facts(error: BaseException, cells: LiveCells) -> LiveFacts:
    """Return the values of the innermost statement of the user, and the failed module."""
    own: tuple[str, FrameType] | None = None
    outer: tuple[str, int] | None = None
    for frame, row in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        text = cells.text(name)
        if text is not None:
            outer = text, row
            text = python_cell(1, text).text
        elif name in MEASURED and outer is not None:
            row = compiled_row(outer[0], StackFrame(name, row), outer[1]) or 0
            text = python_cell(1, outer[0]).text
        elif not is_installed(name):
            text = "".join(linecache.getlines(name, frame.f_globals))
        if text is not None:
            own = _statement(text, row), frame
    if own is None:
        return LiveFacts()
    return LiveFacts(values_of(*own), failed_layer(error.__traceback__))


def _statement(text: str, row: int) -> str:
    """Return the innermost statement at a row; of a compound one its header with a `pass`."""
    first, last = statement_rows(text, row)
    code = textwrap.dedent("\n".join(text.split("\n")[first - 1 : last])).strip()
    code = code.removeprefix("el") if code.startswith("elif ") else code
    return f"{code} pass" if code.endswith(":") else code
