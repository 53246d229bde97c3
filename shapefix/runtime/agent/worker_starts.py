"""Workers of a loader in new interpreters: objects without a pickle, and scripts to be run again."""

from __future__ import annotations

import ast
import linecache
import multiprocessing
import pickle
import re
from types import FrameType
from typing import Any

from ..protocol import WorkersRefusedLine
from . import frames

_NEW = ("spawn", "forkserver")
_MOST_BYTES = 32_000_000
_PARTS = ("collate_fn", "worker_init_fn", "dataset")


class _Enough(Exception):
    """The object is large, and can be pickled so far."""


class _Sink:
    """A file without contents."""

    def __init__(self) -> None:
        self.written = 0

    def write(self, data: Any) -> int:
        size = len(data)
        self.written += size
        if self.written > _MOST_BYTES:
            raise _Enough
        return size


def start_method(context: Any) -> str:
    """How the processes of a context start; without one, how this interpreter starts them."""
    if isinstance(context, str):
        return context
    method = context.get_start_method() if context is not None else None
    # Without `allow_none`, multiprocessing would settle the default for the whole script.
    return (
        method
        or multiprocessing.get_start_method(allow_none=True)
        or multiprocessing.get_all_start_methods()[0]
    )


def refusal(loader: Any, method: str, loader_id: int, caller: FrameType | None) -> WorkersRefusedLine | None:
    """The reason why workers of a loader would not start, if there is one."""
    if method not in _NEW:
        return None
    at = frames.site(caller)
    for part in _PARTS:
        error = _pickling_error(getattr(loader, part, None))
        if error is not None:
            return WorkersRefusedLine(
                kind="workers_refused", loader=loader_id, method=method, part=part, requested_at=at,
                type=type(error).__name__, message=re.sub(r" at 0x[0-9a-f]+", "", str(error))[:300],
            )  # fmt: skip
    if _is_unguarded(caller):
        return WorkersRefusedLine(
            kind="workers_refused", loader=loader_id, method=method, part=None, requested_at=at,
            type="RuntimeError", message="",
        )  # fmt: skip
    return None


def _pickling_error(value: Any) -> Exception | None:
    """The exception of pickling a value, if it says that it cannot be pickled."""
    try:
        pickle.Pickler(_Sink(), pickle.HIGHEST_PROTOCOL).dump(value)
    except _Enough:
        return None
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        text = str(error).lower()
        return error if "pickle" in text or "local object" in text else None
    except Exception:  # a part that multiprocessing pickles in its own way, such as a queue
        return None
    return None


def _is_unguarded(caller: FrameType | None) -> bool:
    """Whether the script's file makes workers whenever it is run, also by another name than `__main__`."""
    outermost = None
    for frame in frames.users(caller):
        outermost = frame
    if outermost is None or outermost.f_globals.get("__name__") != "__main__":
        return False
    code = outermost.f_code
    if code.co_name != "<module>" or code.co_filename.startswith("<"):
        return False
    try:
        body = ast.parse("".join(linecache.getlines(code.co_filename))).body
    except SyntaxError:
        return False
    row = outermost.f_lineno
    around = [each for each in body if each.lineno <= row <= (each.end_lineno or row)]
    return bool(around) and not any(
        isinstance(node, ast.Name) and node.id == "__name__"
        for each in around
        if isinstance(each, ast.If)
        for node in ast.walk(each.test)
    )
