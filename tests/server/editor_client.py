"""A client of the language server over the pipes of a process, with the messages as plain JSON."""

from __future__ import annotations

import atexit
import json
import queue
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TIMEOUT = 60.0
PUBLISHED = "textDocument/publishDiagnostics"
_MAIN = "from shapefix.cli.main import main; main()"
NO_CAPABILITIES: dict[str, Any] = {}


class EditorClient:
    """An editor with one server; capabilities and options are those of its `initialize`.

    changed is code that runs in the server before it starts.
    """

    def __init__(
        self,
        root: Path,
        capabilities: dict[str, Any] = NO_CAPABILITIES,
        options: object = None,
        arguments: tuple[str, ...] = (),
        folders: tuple[Path, ...] = (),
        changed: str = "",
    ) -> None:
        program = ("-m", "shapefix") if not changed else ("-c", f"{changed}; {_MAIN}")
        self.process = subprocess.Popen(
            [sys.executable, *program, "server", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.received: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.published: dict[str, dict[str, Any]] = {}
        """The last published diagnostics of each text."""
        self.requests: list[dict[str, Any]] = []
        """The requests and notifications of the server, except diagnostics."""
        self.answers: dict[str, Any] = {}
        """The results of the server's requests, by their methods; None for others."""
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()
        params = {
            "processId": None,
            "rootUri": root.as_uri(),
            "capabilities": capabilities,
            "initializationOptions": options,
            "workspaceFolders": [{"uri": each.as_uri(), "name": each.name} for each in folders],
        }
        self.capabilities = self.request("initialize", params)["capabilities"]
        self.notify("initialized", {})

    def send(self, message: object) -> None:
        """Send a message, valid or not."""
        self.send_bytes(json.dumps(message).encode())

    def send_bytes(self, body: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.process.stdin.flush()

    def notify(self, method: str, params: object) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: object) -> Any:
        """Send a request and return its result. Raises RuntimeError with the error of the server."""
        return self.result(self.send_request(method, params))

    def send_request(self, method: str, params: object) -> int:
        """Send a request and return its number."""
        self._number += 1
        number = self._number
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    def result(self, number: int) -> Any:
        """Wait for the result of a request."""
        while True:
            message = self.next_message()
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise RuntimeError(message["error"]["message"])
                return message["result"]

    def open(self, uri: str, text: str, language: str = "python") -> None:
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.published.pop(uri, None)
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, uri: str, version: int, *changes: dict[str, Any]) -> None:
        document = {"uri": uri, "version": version}
        params = {"textDocument": document, "contentChanges": list(changes)}
        self.notify("textDocument/didChange", params)

    def close(self, uri: str) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def diagnostics(self, uri: str, version: int | None = 1) -> list[dict[str, Any]]:
        """Wait for the diagnostics of a version of a text."""
        while uri not in self.published or self.published[uri].get("version") != version:
            self.next_message()
        found: list[dict[str, Any]] = self.published[uri]["diagnostics"]
        return found

    def until_published(self, uri: str) -> list[dict[str, Any]]:
        """Wait for the next diagnostics of a text."""
        self.published.pop(uri, None)
        while uri not in self.published:
            self.next_message()
        found: list[dict[str, Any]] = self.published[uri]["diagnostics"]
        return found

    def end(self) -> int:
        """End the server as an editor does, and return its exit code."""
        self.request("shutdown", None)
        self.notify("exit", None)
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(TIMEOUT)

    def next_message(self) -> dict[str, Any]:
        """Take the next message into account, and return it."""
        message = self.received.get(timeout=TIMEOUT)
        if message is None:
            raise EOFError("the server has ended")
        if message.get("method") == PUBLISHED:
            self.published[message["params"]["uri"]] = message["params"]
        elif "method" in message:
            self.requests.append(message)
            if "id" in message:
                self.send(
                    {"jsonrpc": "2.0", "id": message["id"], "result": self.answers.get(message["method"])}
                )
        return message

    def _read(self) -> None:
        assert self.process.stdout is not None
        while True:
            length = 0
            while (header := self.process.stdout.readline()).strip():
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
            if not length:
                self.received.put(None)
                return
            self.received.put(json.loads(self.process.stdout.read(length)))


def insertion(line: int, character: int, text: str) -> dict[str, Any]:
    """A change of the protocol."""
    place = {"line": line, "character": character}
    return {"range": {"start": place, "end": place}, "text": text}


@cache
def _running_editor() -> EditorClient:
    client = EditorClient(Path(tempfile.gettempdir()))
    atexit.register(client.process.kill)
    return client


@pytest.fixture
def editor() -> EditorClient:
    """One editor for all tests of this process; each has files of its own, and closes them."""
    return _running_editor()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder of a project of its own."""
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path
