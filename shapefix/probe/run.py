"""One probe of one script: run it, read what was seen, and leave nothing behind."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from shapefix.probe import child, observations
from shapefix.probe.account import Run


def probe(python: str, script: str, arguments: Sequence[str], steps: int, timeout: float) -> Run:
    """Run a script with its arguments in the current folder, for so many training steps.

    timeout is in seconds. Raises OSError where the interpreter cannot be started. When it returns, or
    KeyboardInterrupt is raised, nothing runs any more, and what the script has saved is gone.
    """
    with tempfile.TemporaryDirectory(prefix="shapefix-probe-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        ended = child.run(python, script, arguments, folder, steps, timeout)
        observed = observations.read(folder / "observations.jsonl")
    return Run(script, observed, ended, timeout)
