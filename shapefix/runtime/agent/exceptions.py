"""Exceptions from watched calls: facts about the call, and whether the script swallows them."""

from __future__ import annotations

import ast
import contextlib
import linecache
import os
import sys
from collections import UserDict
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from ..protocol import (
    DescribedValue,
    ExceptionCause,
    ExceptionDetails,
    ExceptionLine,
    ExceptionSwallowedLine,
    MissingKey,
    Origin,
    UserPlace,
)
from . import frames, handler_lookup
from .assertions import asserted_values
from .describe import describe
from .fake_gpu.limits import exceeded_limit
from .session import Session, StopProbe

MARK = "_shapefix_probe_failure"
"""The attribute of an exception that has its id."""

_TORCH = os.path.dirname(torch.__file__) + os.sep  # noqa: PTH120
_CONTROL = (StopProbe, StopIteration, StopAsyncIteration, GeneratorExit, KeyboardInterrupt, SystemExit)
_CONTROL_NAMES = ("_StopRecomputationError",)  # how gradient checkpointing ends a recomputation early
_AT_MOST, _SWALLOWED, _KEYS = 50, 20, 20


class ExceptionRecorder:
    """The exceptions of one session, each written once, at its innermost watched call."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._number = 0
        self._caught = 0

    def record(
        self,
        error: BaseException,
        origin: Origin,
        caller: FrameType | None,
        details: Callable[[], ExceptionDetails],
    ) -> None:
        """Record an exception leaving a watched call; caller is the calling frame."""
        if isinstance(error, _CONTROL) or type(error).__name__ in _CONTROL_NAMES:
            return
        number = getattr(error, MARK, None)
        if number is None and self._session.guessed_at is not None:
            self._session.stop(_unpredictable(error, self._session.guessed_at), unpredictable=True)
        if number is None:
            self.stop_at_limit(error)
        if number is None:
            number = self._write(error, origin, caller, details())
        if self._session.depth == 0 and number is not None:
            self._session.pending.append((number, _names(error), frames.stack(error.__traceback__, caller)))

    def stop_at_limit(self, error: BaseException) -> None:
        """Raise StopProbe for an exception of the simulated GPU."""
        limit = exceeded_limit(error) if self._session.sizes_only else ""
        if limit:
            found = frames.innermost(error.__traceback__)
            file = found[1]["file"] if found else ""
            at = f" at {os.path.basename(file)}:{found[1]['row']}" if found else ""  # noqa: PTH119
            self._session.stop(
                f"the simulated GPU does not support the call{at}: {limit}", unpredictable=True
            )

    def caught(self, error: BaseException, handler: UserPlace, silent: bool) -> None:
        """Record that a handler of the user's caught an exception; silent handlers only report it.

        Raises StopProbe if that happens many times and nothing is trained.
        """
        session = self._session
        if not session.watches() or isinstance(error, _CONTROL):
            return
        number = getattr(error, MARK, None)
        if number is None and silent and session.model_calls and _is_about_tensors(error):
            number = self._write(error, "script", None, {})
        if number is None:
            return
        session.pending[:] = [each for each in session.pending if each[0] != number]
        session.sink.write(ExceptionSwallowedLine(kind="exception_swallowed", id=number, handler=handler))
        self._caught += 1
        if self._caught > _SWALLOWED and not session.steps:
            session.stop(f"{_SWALLOWED} exceptions were swallowed without a training step")

    def flush(self) -> None:
        """Record exceptions from watched calls as swallowed if no handler is running."""
        pending = self._session.pending
        if not pending:
            return
        handled = _numbers(sys.exc_info()[1])
        rest = [each for each in pending if each[0] in handled]
        gone = [each for each in pending if each[0] not in handled]
        pending[:] = rest
        self._swallowed(gone)

    def finish(self, error: BaseException | None) -> None:
        """Record all exceptions as swallowed except the one ending the script, if any."""
        raised = _numbers(error)
        gone = [each for each in self._session.pending if each[0] not in raised]
        self._session.pending.clear()
        self._swallowed(gone)

    def uncaught(self, error: BaseException) -> list[int]:
        """Write the exception ending the script; returns its id, and the ids of its causes."""
        if getattr(error, MARK, None) is None:
            self._write(error, "script", None, {})
        return sorted(_numbers(error))

    def _swallowed(self, gone: list[Any]) -> None:
        for number, names, places in gone:
            handler = handler_lookup.find_handler(names, places)
            self._session.sink.write(
                ExceptionSwallowedLine(kind="exception_swallowed", id=number, handler=handler)
            )

    def _write(
        self, error: BaseException, origin: Origin, caller: FrameType | None, details: ExceptionDetails
    ) -> int | None:
        if self._number >= _AT_MOST:
            return None
        self._number += 1
        with contextlib.suppress(Exception):  # an exception with slots looks like a new one later
            setattr(error, MARK, self._number)
        self._session.sink.write(
            ExceptionLine(
                kind="exception",
                id=self._number,
                origin=origin,
                type=type(error).__name__,
                message=_message(error),
                causes=_causes(error),
                stack=_syntax_error_place(error) or frames.stack(error.__traceback__, caller),
                values=_values(error),
                details=_with_causes(error, details),
            )
        )
        return self._number


def _unpredictable(error: BaseException, guessed_at: UserPlace) -> str:
    """The reason to stop at an exception possibly caused by a guessed value."""
    at = f"{os.path.basename(guessed_at['file'])}:{guessed_at['row']}"  # noqa: PTH119
    rows = _message(error).splitlines() or [""]
    return (
        f"memory cannot be forecast: {at} reads a value that the simulated GPU does not have, "
        f"which leads to {type(error).__name__}: {rows[0]}"
    )


def _causes(error: BaseException) -> list[ExceptionCause]:
    """The causes of an exception, explicit (`from`) or handled at the time."""
    causes: list[ExceptionCause] = []
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while cause is not None and len(causes) < 5:
        causes.append({"type": type(cause).__name__, "message": _message(cause)})
        cause = cause.__cause__ or cause.__context__
    return causes


def _is_about_tensors(error: BaseException) -> bool:
    """Whether an exception comes from torch, or from an expression of the user's with tensors."""
    if not isinstance(error, (RuntimeError, ValueError, TypeError, IndexError)):
        return False
    raised_in = frames.raised_in(error.__traceback__) or ""
    if frames.is_users(raised_in):
        return any(each["kind"] == "tensor" for each in _values(error).values())
    return raised_in.startswith(_TORCH)


def _syntax_error_place(error: BaseException) -> list[UserPlace]:
    """Place of a syntax error in a file of the user's, as a stack."""
    if not isinstance(error, SyntaxError) or not error.filename or not frames.is_users(error.filename):
        return []
    row, column = error.lineno or 1, error.offset or 1
    return [
        UserPlace(
            file=error.filename,
            row=row,
            column=column,
            end_row=row,
            end_column=column + 1,
            function="<module>",
        )
    ]


def _message(error: BaseException) -> str:
    try:
        return str(error)[:2000]
    except Exception as broken:
        return f"(no message: str() raises {type(broken).__name__})"


def _names(error: BaseException) -> list[str]:
    return [each.__name__ for each in type(error).__mro__]


def _numbers(error: BaseException | None) -> set[int]:
    """The ids of an exception and its causes."""
    found: set[int] = set()
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        number = getattr(each, MARK, None)
        if number is not None:
            found.add(number)
        waiting += [each.__cause__, each.__context__]
    return found


def _values(error: BaseException) -> dict[str, DescribedValue]:
    """The tensors and lists in the failing expression of the user's innermost frame, by name."""
    found = frames.innermost(error.__traceback__)
    if found is None:
        return {}
    frame, place = found
    rows = range(place["row"], place["end_row"] + 1)
    source = [linecache.getline(place["file"], row) for row in rows]
    if not source or not source[0]:
        return {}
    source[-1] = source[-1][: place["end_column"] - 1]
    source[0] = source[0][place["column"] - 1 :]
    try:
        tree = ast.parse(f"({''.join(source)})", mode="eval")
    except (SyntaxError, ValueError):
        return {}
    named: dict[str, DescribedValue] = {}
    for node in ast.walk(tree):
        name, value = _name_and_value(node, frame)
        if isinstance(value, (torch.Tensor, list)) and len(named) < 8:
            named[name] = describe(value, 3)
    return named


def _with_missing_key(error: BaseException, details: ExceptionDetails) -> ExceptionDetails:
    """Add the keys of the mapping in the failing expression, for a KeyError of a text."""
    found = frames.innermost(error.__traceback__)
    if not isinstance(error, KeyError) or not error.args or not isinstance(error.args[0], str) or not found:
        return details
    frame, place = found
    source = linecache.getline(place["file"], place["row"])[place["column"] - 1 : place["end_column"] - 1]
    try:
        node = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return details
    if not isinstance(node, ast.Subscript):
        return details
    name, value = _name_and_value(node.value, frame)
    held = getattr(value, "__dict__", {}).get("data") if isinstance(value, UserDict) else value
    if not isinstance(held, dict) or error.args[0] in dict.keys(held):
        return details
    keys = [each for each in dict.keys(held) if isinstance(each, str)]
    missing = MissingKey(name=name, key=error.args[0][:80], keys=[each[:80] for each in keys[:_KEYS]])
    return {**details, "missing_key": missing}


def _with_causes(error: BaseException, details: ExceptionDetails) -> ExceptionDetails:
    """Add the facts about a missing key or folder, or a failed assert."""
    details = _with_missing_folder(error, _with_missing_key(error, details))
    found = frames.innermost(error.__traceback__) if isinstance(error, AssertionError) else None
    if found is None or found[0].f_code.co_filename != frames.raised_in(error.__traceback__):
        return details
    asserted = asserted_values(found[0], found[1]["row"])
    return {**details, "asserted": asserted} if asserted else details


def _with_missing_folder(error: BaseException, details: ExceptionDetails) -> ExceptionDetails:
    """Add the missing folder of a missing file."""
    path = error.filename if isinstance(error, FileNotFoundError) else None
    folder = os.path.dirname(os.fsdecode(path)) if isinstance(path, (str, bytes)) else ""  # noqa: PTH120
    if not folder or os.path.isdir(folder):  # noqa: PTH112
        return details
    return {**details, "missing_folder": folder}


def _name_and_value(node: ast.AST, frame: FrameType) -> tuple[str, object]:
    """A name, or an attribute of a name, and its value, without running code of the user's."""
    if isinstance(node, ast.Name):
        return node.id, frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = frame.f_locals.get(node.value.id)
        return f"{node.value.id}.{node.attr}", getattr(owner, "__dict__", {}).get(node.attr)
    return "", None
