"""Exceptions that leave a watched call: what was known there, and whether the script swallowed them."""

from __future__ import annotations

import ast
import contextlib
import linecache
import os
import sys
from types import FrameType
from typing import Any

import torch

from . import frames, handlers
from .describe import Described, describe
from .session import Session, StopProbe

MARK = "_shapefix_probe_failure"
"""The attribute of an exception that has the number that it was noted under."""

_TORCH = os.path.dirname(torch.__file__) + os.sep  # noqa: PTH120
_CONTROL = (StopProbe, StopIteration, StopAsyncIteration, GeneratorExit, KeyboardInterrupt, SystemExit)
_CONTROL_NAMES = ("_StopRecomputationError",)  # how gradient checkpointing ends a recomputation early
_AT_MOST, _SWALLOWED = 50, 20


class Failures:
    """The exceptions of one session, each written once, by the innermost watched call that it left."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._number = 0
        self._caught = 0

    def note(self, error: BaseException, kind: str, outside: FrameType | None, **known: Any) -> None:
        """An exception leaves a watched call of this kind; outside is the frame that made the call."""
        if isinstance(error, _CONTROL) or type(error).__name__ in _CONTROL_NAMES:
            return
        number = getattr(error, MARK, None)
        if number is None and self._session.guess is not None:
            self._session.stop(_unforeseen(error, self._session.guess), unforeseen=True)
        if number is None:
            number = self._write(error, kind, outside, known)
        if self._session.depth == 0 and number is not None:
            self._session.pending.append((number, _names(error), frames.stack(error.__traceback__, outside)))

    def caught(self, error: BaseException, by: frames.Place, silent: bool) -> None:
        """A handler of the user's has caught an exception; silent is one that makes up for nothing.

        Raises StopProbe where that goes on and on, and nothing is trained.
        """
        session = self._session
        if not session.watches() or isinstance(error, _CONTROL):
            return
        number = getattr(error, MARK, None)
        if number is None and silent and session.model_calls and _of_tensors(error):
            number = self._write(error, "script", None, {})
        if number is None:
            return
        session.pending[:] = [each for each in session.pending if each[0] != number]
        session.observations.write("swallowed", failure=number, by=by)
        self._caught += 1
        if self._caught > _SWALLOWED and not session.steps:
            session.stop(f"{_SWALLOWED} exceptions were swallowed, and no training step was made")

    def flush(self) -> None:
        """The script goes on: what has left a watched call, and is not being handled now, was swallowed."""
        pending = self._session.pending
        if not pending:
            return
        handled = _numbers(sys.exc_info()[1])
        rest = [each for each in pending if each[0] in handled]
        gone = [each for each in pending if each[0] not in handled]
        pending[:] = rest
        self._swallowed(gone)

    def finish(self, error: BaseException | None) -> None:
        """The script has ended, with an exception or without: the others were swallowed."""
        raised = _numbers(error)
        gone = [each for each in self._session.pending if each[0] not in raised]
        self._session.pending.clear()
        self._swallowed(gone)

    def uncaught(self, error: BaseException) -> list[int]:
        """Write an exception that ended the script; returns its number, and those that it was raised from."""
        if getattr(error, MARK, None) is None:
            self._write(error, "script", None, {})
        return sorted(_numbers(error))

    def _swallowed(self, gone: list[Any]) -> None:
        for number, names, places in gone:
            self._session.observations.write("swallowed", failure=number, by=handlers.handler(names, places))

    def _write(
        self, error: BaseException, kind: str, outside: FrameType | None, known: dict[str, Any]
    ) -> int | None:
        if self._number >= _AT_MOST:
            return None
        self._number += 1
        with contextlib.suppress(Exception):  # an exception with slots will look like a new one
            setattr(error, MARK, self._number)
        self._session.observations.write(
            "failure",
            id=self._number,
            where=kind,
            **told(error),
            stack=_misread(error) or frames.stack(error.__traceback__, outside),
            values=_values(error),
            **{name: each() if callable(each) else each for name, each in known.items()},
        )
        return self._number


def _unforeseen(error: BaseException, guess: frames.Place) -> str:
    """What is said of an exception that may come of a value which was only guessed."""
    at = f"{os.path.basename(guess['file'])}:{guess['row']}"  # noqa: PTH119
    rows = _message(error).splitlines() or [""]
    return (
        f"it cannot be forecast: a value is read at {at} that a GPU which is not there does not have, "
        f"and what follows from it raises {type(error).__name__}: {rows[0]}"
    )


def told(error: BaseException) -> dict[str, Any]:
    """The type and message of an exception, of those it was raised from, and the last frame of all."""
    causes: list[dict[str, str]] = []
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while cause is not None and len(causes) < 5:
        causes.append({"type": type(cause).__name__, "message": _message(cause)})
        cause = cause.__cause__ or cause.__context__
    file = frames.raised_in(error.__traceback__)
    return {"type": type(error).__name__, "message": _message(error), "causes": causes, "raised_in": file}


def _of_tensors(error: BaseException) -> bool:
    """Whether an exception comes out of torch, or of an expression of the user's that works on tensors."""
    if not isinstance(error, (RuntimeError, ValueError, TypeError, IndexError)):
        return False
    raised_in = str(told(error)["raised_in"] or "")
    if frames.is_users(raised_in):
        return any(each["is"] == "tensor" for each in _values(error).values())
    return raised_in.startswith(_TORCH)


def _misread(error: BaseException) -> list[frames.Place]:
    """Where a file of the user's cannot be parsed."""
    if not isinstance(error, SyntaxError) or not error.filename or not frames.is_users(error.filename):
        return []
    row, column = error.lineno or 1, error.offset or 1
    return [
        {
            "file": error.filename,
            "row": row,
            "column": column,
            "end_row": row,
            "end_column": column + 1,
            "function": "<module>",
        }
    ]


def _message(error: BaseException) -> str:
    try:
        return str(error)[:2000]
    except Exception as broken:
        return f"(its message cannot be told: {type(broken).__name__})"


def _names(error: BaseException) -> list[str]:
    return [each.__name__ for each in type(error).__mro__]


def _numbers(error: BaseException | None) -> set[int]:
    """The failures that an exception is, or was raised from or during."""
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


def _values(error: BaseException) -> dict[str, Described]:
    """What the names in the failing expression of the user's innermost frame hold: tensors and lists."""
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
    named: dict[str, Described] = {}
    for node in ast.walk(tree):
        name, value = _held(node, frame)
        if isinstance(value, (torch.Tensor, list)) and len(named) < 8:
            named[name] = describe(value, 3)
    return named


def _held(node: ast.AST, frame: FrameType) -> tuple[str, object]:
    """A name, or an attribute of a name, and its value; nothing of the user's runs for it."""
    if isinstance(node, ast.Name):
        return node.id, frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = frame.f_locals.get(node.value.id)
        return f"{node.value.id}.{node.attr}", getattr(owner, "__dict__", {}).get(node.attr)
    return "", None
