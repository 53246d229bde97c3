"""Requests waiting for the analysis of the present texts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TypeVar

from shapefix.light_dataclasses import dataclass
from shapefix.server.open_files import OpenFile

_PATIENCE = 10.0
"""Seconds that a request waits for the analysis of the present text; others are answered meanwhile."""


@dataclass(frozen=True)
class _Waiting:
    """A request for the answer about a number of a file."""

    path: str
    number: int
    future: asyncio.Future[bool]


class AwaitedAnswers:
    """The answers of one kind: the newest number of each file with one, and the waiting requests."""

    def __init__(self) -> None:
        self._arrived: dict[str, int] = {}
        self._waiting: list[_Waiting] = []

    def has(self, file: OpenFile) -> bool:
        """Check for the answer about the present text of a file."""
        return self._arrived.get(file.path) == file.number

    def add(self, file: OpenFile) -> None:
        """Note the answer about the present text of a file."""
        self._arrived[file.path] = file.number

    def forget(self, path: str) -> None:
        """Forget a closed file."""
        self._arrived.pop(path, None)

    async def wait(self, file: OpenFile) -> bool:
        """Wait for the answer about the present text of a file; False if this takes too long."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(file.path, file.number, future))
        return await within_patience(future) is True

    def end_waiting(self, files: Mapping[str, OpenFile], versions: Mapping[str, int]) -> bool:
        """Answer the requests for these versions, and those for older ones; return whether there are any."""
        still = []
        for each in self._waiting:
            file = files.get(each.path)
            if each.future.done():
                continue
            if file is None or file.number != each.number:
                each.future.set_result(False)
            elif versions.get(each.path) == each.number:
                each.future.set_result(True)
            else:
                still.append(each)
        has_answered = len(still) < len(self._waiting)
        self._waiting = still
        return has_answered


_Result = TypeVar("_Result")


async def within_patience(future: asyncio.Future[_Result]) -> _Result | None:
    """Return the result of a future; None if it takes too long."""
    try:
        return await asyncio.wait_for(future, _PATIENCE)
    except TimeoutError:
        return None
