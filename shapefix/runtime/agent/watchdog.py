"""End the process at the time limit, after an ignored stop, in a deadlock, or without its parent."""

from __future__ import annotations

import os
import sys
import threading
import time

from . import frames
from .import_time import ImportTime, is_importing
from .session import Session, exit_now

_GRACE = 10.0
_INTERVAL = 0.2
_OTHER_RANKS = 4.0  # for other ranks to see the same end, not a lost connection


def start(
    session: Session, limit: float, imports: ImportTime, elapsed: float = 0.0, *, alone: bool = True
) -> None:
    """Watch this process from a thread; limit and elapsed are in seconds, without imports.

    A process that is not alone waits for the other ranks to reach the limit as well.
    """
    parent = os.getppid()
    began = time.monotonic()
    until = began + limit - elapsed

    def watch() -> None:
        last = began
        while True:
            time.sleep(_INTERVAL)
            now = time.monotonic()
            if is_importing(sys._current_frames().get(session.thread)):
                imports.add(now - last)
            last = now
            if os.getppid() != parent:
                exit_now(1)
            if session.ended:
                continue
            if now > until and now > until + imports.longest():
                running = sys._current_frames().get(session.thread)
                session.end("time limit", site=frames.site(running), seconds=limit)
                time.sleep(0.0 if alone else _OTHER_RANKS)
                exit_now(0)
            if session.is_deadlocked():
                running = sys._current_frames().get(session.thread)
                session.end("stuck", site=frames.site(running))
                time.sleep(_OTHER_RANKS)
                exit_now(0)
            if session.stopped is not None and now > session.stopped_at + _GRACE:
                session.end("stopped", forced=True)
                exit_now(0)

    threading.Thread(target=watch, name="shapefix probe", daemon=True).start()
