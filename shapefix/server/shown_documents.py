"""Documents for the user: the pages of rules, and the reports of probes."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from shapefix.rulebook.pages import page_of


class ShownDocuments:
    """Shows texts in an editor as files in a temporary folder."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def is_supported(self) -> bool:
        """Whether the editor shows documents."""
        window = self._server.client_capabilities.window
        return window is not None and window.show_document is not None and window.show_document.support

    def end(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def explain(self, rule: str) -> None:
        """Show the page of a rule."""
        page = page_of(rule)
        if page is not None:
            self._show(f"{page.code}-{page.name}.md", page.text())

    async def probe(self, path: str) -> int | None:
        """Run `shapefix probe` on a script, show its report and return its exit code; None if cancelled."""
        token, name = str(uuid4()), os.path.basename(path)  # noqa: PTH119
        window = self._server.client_capabilities.window
        has_progress = window is not None and bool(window.work_done_progress)
        progress = self._server.work_done_progress
        if has_progress:
            await progress.create_async(token)
            progress.begin(token, types.WorkDoneProgressBegin(f"shapefix probe {name}", cancellable=True))
        try:
            found = await self._output_of(("probe", "--color", "never", path), path, token)
        finally:
            if has_progress:
                progress.end(token, types.WorkDoneProgressEnd())
        if found is None:
            return None
        code, output = found
        self._show(f"probe-{name}.txt", output)
        return code

    async def _output_of(self, arguments: tuple[str, ...], path: str, token: str) -> tuple[int, str] | None:
        """Run shapefix in the folder of the workspace; None if the user cancels it."""
        folder = self._server.workspace.root_path or os.path.dirname(path)  # noqa: PTH120
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "shapefix", *arguments),
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        running = asyncio.create_task(process.communicate())
        cancelled = self._server.work_done_progress.tokens.get(token)
        while not running.done():
            await asyncio.wait((running,), timeout=0.2)
            if cancelled is not None and cancelled.cancelled() and not running.done():
                # The probe ends the script that it runs.
                with suppress(ProcessLookupError):
                    process.terminate()
                await running
                return None
        output, _ = running.result()
        return process.returncode or 0, output.decode(errors="replace")

    def _show(self, name: str, text: str) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="shapefix-")
        path = Path(self._folder.name) / name
        path.write_text(text, encoding="utf-8")
        params = types.ShowDocumentParams(path.as_uri(), take_focus=True)
        # The answer says whether the editor has shown it, and some editors send none.
        self._server.window_show_document(params)
