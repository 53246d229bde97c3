"""Copy the lines of each rank to the other nodes, through the store of torchrun's rendezvous."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch.distributed

from ..protocol import Line
from .masking import PATH_FIELDS, Masker
from .session import Session

_INTERVAL, _PATIENCE, _CONNECT = 0.5, 10.0, timedelta(seconds=60)
_LARGEST = 256 * 1024


def install(session: Session, files: str, masker: Callable[[], Masker]) -> None:
    """Copy lines until the session ends, if torchrun has started ranks on several nodes.

    files is the path of the lines of all ranks, without the dot and the rank at its end. masker masks the
    secrets of this node before its lines leave it.
    """
    size, local = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_WORLD_SIZE"])
    if size == local:
        return
    mirror = _NodeMirror(files, size, masker)
    session.after_end = mirror.finish
    threading.Thread(target=mirror.run, name="shapefix nodes", daemon=True).start()


class _NodeMirror:
    """Sends the lines of one rank; the first rank of a node also receives those of other nodes."""

    def __init__(self, files: str, size: int, masker: Callable[[], Masker]) -> None:
        self._files, self._masker = files, masker
        self._rank, local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
        first = self._rank - local
        own = range(first, first + int(os.environ["LOCAL_WORLD_SIZE"]))
        self._others = [rank for rank in range(size) if rank not in own] if local == 0 else []
        self._sent = self._chunks = 0
        self._received = dict.fromkeys(self._others, 0)
        self._ended: set[int] = set()
        self._store: Any = None
        self._lock = threading.Lock()
        self._over = False

    def run(self) -> None:
        """Send and receive lines every half second. A lost connection ends this."""
        try:
            host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            store = torch.distributed.TCPStore(
                host, port, is_master=False, wait_for_workers=False, timeout=_CONNECT
            )
            self._store = torch.distributed.PrefixStore("shapefix", store)
            while not self._over:
                self._exchange()
                time.sleep(_INTERVAL)
        except (RuntimeError, OSError, ValueError):
            self._over = True

    def finish(self) -> None:
        """Send the last lines, and wait for those of the other nodes, but not for long."""
        until = time.monotonic() + _PATIENCE
        try:
            while self._store is not None and not self._over:
                self._exchange()
                if len(self._ended) == len(self._others) or time.monotonic() > until:
                    break
                time.sleep(_INTERVAL)
            if self._others and self._store is not None and not self._over:
                self._leave(until)
        except (RuntimeError, OSError, ValueError):
            pass
        self._over = True

    def _leave(self, until: float) -> None:
        """Wait until each node has all lines: the store ends with the first of them."""
        nodes = int(os.environ["WORLD_SIZE"]) // int(os.environ["LOCAL_WORLD_SIZE"])
        self._store.add("left", 1)
        while self._rank == 0 and self._store.add("left", 0) < nodes and time.monotonic() < until:
            time.sleep(_INTERVAL)

    def _exchange(self) -> None:
        with self._lock:
            self._send()
            for rank in self._others:
                self._receive(rank)

    def _send(self) -> None:
        with open(f"{self._files}.{self._rank}", "rb") as file:  # noqa: PTH123
            file.seek(self._sent)
            data = file.read(_LARGEST)
        whole = data.rfind(b"\n") + 1
        if not whole:
            return
        masker = self._masker()
        lines = (masked_line(text, masker) for text in data[:whole].decode("utf-8", "replace").splitlines())
        self._store.set(f"{self._rank}/{self._chunks}", "\n".join(lines) + "\n")
        self._store.add(f"{self._rank}/chunks", 1)
        self._chunks += 1
        self._sent += whole

    def _receive(self, rank: int) -> None:
        known = self._store.add(f"{rank}/chunks", 0)
        for number in range(self._received[rank], known):
            data = self._store.get(f"{rank}/{number}")
            with open(f"{self._files}.{rank}", "ab") as file:  # noqa: PTH123
                file.write(data)
            if b'"kind": "end"' in data or b'"kind":"end"' in data:
                self._ended.add(rank)
        self._received[rank] = known


def masked_line(text: str, masker: Masker) -> str:
    """Mask the secrets in a line, its paths apart."""
    try:
        line: Line = json.loads(text)
    except ValueError:
        return ""
    return json.dumps(masker.mask_all(line, PATH_FIELDS))
