"""One probe of one script: run it, read what was seen, and leave nothing behind."""

from __future__ import annotations

import contextlib
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from shapefix.probe import child, observations
from shapefix.probe.account import Run


def probe(
    python: str,
    script: str,
    arguments: Sequence[str],
    steps: int,
    timeout: float,
    options: Sequence[str] = (),
) -> Run:
    """Run a script with its arguments in the current folder, for so many training steps.

    timeout is in seconds; options are more of the agent's own. Raises OSError where the interpreter cannot
    be started. When it returns, or is interrupted, nothing runs any more, and what the script has saved is
    gone.
    """
    with (
        _terminated_as_interrupted(),
        tempfile.TemporaryDirectory(prefix="shapefix-probe-", ignore_cleanup_errors=True) as name,
    ):
        folder = Path(name)
        ended = child.run(python, script, arguments, folder, steps, timeout, options)
        observed = observations.read(folder / "observations.jsonl")
    return Run(script, observed, ended, timeout)


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM, as a CI sends it that gives up, clean up as Ctrl-C does, and exit with 143."""

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
