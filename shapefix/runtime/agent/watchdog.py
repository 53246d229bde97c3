"""Ends the process from inside: at the time limit, after a stop not obeyed, and when nobody waits for it."""

from __future__ import annotations

import os
import sys
import threading
import time

from . import frames
from .session import Session, leave

_GRACE = 10.0
_INTERVAL = 0.2
_FAREWELL = 4.0  # until other processes have seen the same, and not that this one is gone


def start(session: Session, limit: float, gone: float = 0.0, *, alone: bool = True) -> None:
    """Watch this process from a thread of its own; limit is in seconds, of which some are gone.

    A process that is not alone waits for the others to see the end of the time as well.
    """
    parent = os.getppid()
    until = time.monotonic() + limit - gone

    def watch() -> None:
        while True:
            time.sleep(_INTERVAL)
            now = time.monotonic()
            if os.getppid() != parent:
                leave(1)
            if session.ended:
                continue
            if now > until:
                running = sys._current_frames().get(session.thread)
                session.end("time limit", site=frames.site(running), seconds=limit)
                time.sleep(0.0 if alone else _FAREWELL)
                leave(0)
            if session.stuck():
                running = sys._current_frames().get(session.thread)
                session.end("stuck", site=frames.site(running))
                time.sleep(_FAREWELL)
                leave(0)
            if session.stopped is not None and now > session.stopped_at + _GRACE:
                session.end("stopped", forced=True)
                leave(0)

    threading.Thread(target=watch, name="shapefix probe", daemon=True).start()
