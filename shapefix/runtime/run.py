"""One probe of one script: run it, read what was seen, and leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from shapefix.runtime import child, observations
from shapefix.runtime.report.text_report import Run
from shapefix.sources.notebooks import cells, path_of
from shapefix.sources.text import read_bytes


def probe(
    python: str,
    script: str,
    arguments: Sequence[str],
    steps: int,
    timeout: float,
    options: Sequence[str] = (),
    processes: int = 1,
) -> Run:
    """Run a script with its arguments in the current folder, for so many training steps.

    script is a file, a folder with a `__main__.py` or a notebook; with `--module` among the options, the name
    of a module. timeout is in seconds; options are more of the agent's own. Several processes are ranks that
    torchrun starts. When it returns, or is
    interrupted, nothing runs any more, and what the script has saved is gone. Raises OSError where the
    interpreter cannot be started, and Unreadable for what is no notebook with Python.
    """
    with (
        terminated_as_interrupted(),
        tempfile.TemporaryDirectory(prefix="shapefix-probe-", ignore_cleanup_errors=True) as name,
    ):
        folder = Path(name)
        named = (*options, *_cells(script, folder))
        ended = child.run(python, script, arguments, folder, steps, timeout, named, processes)
        if processes > 1:
            files = [folder / f"observations.jsonl.{rank}" for rank in range(processes)]
            ranks = tuple(map(observations.read, files))
            return Run(script, ranks[0], ended, timeout, ranks)
        observed = observations.read(folder / "observations.jsonl")
    return Run(script, observed, ended, timeout)


def _cells(script: str, folder: Path) -> Sequence[str]:
    """The option that tells the agent of the cells of a notebook, which are written into folder."""
    if not script.endswith(".ipynb"):
        return ()
    file, path = folder / "cells.json", str(Path(script).absolute())
    made = [
        {
            "path": path_of(path, cell.number),
            "text": cell.text,
            "left_out": [(each.row, each.text) for each in cell.skipped_lines],
        }
        for cell in cells(read_bytes(script))
    ]
    file.write_text(json.dumps(made), "utf-8")
    return "--cells", str(file)


@contextlib.contextmanager
def terminated_as_interrupted() -> Iterator[None]:
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
