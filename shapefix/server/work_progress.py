"""The progress of a long check, for the status line of an editor."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from lsprotocol import types
from pygls.lsp.server import LanguageServer

PATIENCE = 1.0
"""Seconds of work before it is shown."""


class WorkProgress:
    """Shows one piece of work of a server, from some time after its start until its end."""

    def __init__(self, server: LanguageServer, title: str) -> None:
        self._server = server
        self._title = title
        self._timer: asyncio.TimerHandle | None = None
        self._token: str | None = None
        self._shown: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Note the start of the work, or of more of it."""
        window = self._server.client_capabilities.window
        if window is None or not window.work_done_progress or self._timer is not None:
            return
        self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._show)

    def end(self) -> None:
        """Note the end of the work."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._token is not None:
            self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd())
            self._token = None

    def _show(self) -> None:
        self._shown = asyncio.create_task(self._begin())

    async def _begin(self) -> None:
        token = str(uuid4())
        await self._server.work_done_progress.create_async(token)
        # The work may have ended while the editor answered.
        if self._timer is not None:
            self._server.work_done_progress.begin(token, types.WorkDoneProgressBegin(self._title))
            self._token = token
