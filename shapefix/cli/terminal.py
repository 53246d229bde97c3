"""Terminal streams, colors, and the progress bar."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from shapefix.report.view import visible, wants_color
from shapefix.sources.text import reason

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def prepare_streams() -> None:
    """Escape characters missing from the encoding of the terminal, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def open_missing_streams() -> bool:
    """Replace closed standard streams, as after `>&-`; returns whether there is an output."""
    if sys.stdin is None:
        # Not readable: an empty input would be an answer about nothing.
        sys.stdin = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        return False
    return True


class InputUnreadable(Exception):
    """Standard input cannot be read; the message has the reason."""


class UnusableFile(Exception):
    """A file named by an option cannot be used; the message has its name and the reason."""

    def __init__(self, name: str, reason: str) -> None:
        from shapefix.report.view import one_line

        super().__init__(f"{one_line(name)}: {reason}")


def read_input() -> bytes:
    """Return the content of standard input. Raises InputUnreadable."""
    try:
        return sys.stdin.buffer.read()
    except io.UnsupportedOperation:
        raise InputUnreadable("it is closed") from None
    except (OSError, ValueError) as error:
        raise InputUnreadable(reason(error)) from None


def use_color(choice: str, stream: TextIO) -> bool:
    """Decide whether to color a stream; choice is always, never or auto."""
    return wants_color(stream) if choice == "auto" else choice == "always"


def width(stream: TextIO) -> int:
    """Return the width of the output in cells; COLUMNS applies if stream is not a terminal."""
    try:
        known = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        known = 0
    return known or shutil.get_terminal_size().columns


def echo_err(line: str) -> None:
    """Write one line to stderr, without control characters. It is lost if stderr is full or closed."""
    with contextlib.suppress(OSError):
        sys.stderr.write(visible(line, "\n") + "\n")
        sys.stderr.flush()


@contextlib.contextmanager
def terminated_as_interrupt() -> Iterator[None]:
    """Raise KeyboardInterrupt for SIGTERM, too.

    `timeout 60 shapefix check` sends that signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    around = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, around)


class ProgressBar:
    """A progress bar, shown after a second on terminals only, and removed at the end.

    Elsewhere, as in the log of a CI job, a line says that very many files are being checked, unless quiet.
    """

    PATIENCE = 1.0
    INTERVAL = 0.1
    MANY = 10_000

    def __init__(self, what: str, stream: TextIO, quiet: bool = False) -> None:
        self._says = not quiet
        self._what = what
        self._stream = stream
        self._shows = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._due = time.monotonic() + self.PATIENCE
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def __call__(self, done: int, total: int) -> None:
        """Show the number of finished files."""
        if not self._shows:
            if self._says and total >= self.MANY:
                self._says = False
                with contextlib.suppress(OSError):
                    self._stream.write(f"{self._what} {total:,} files\n")
                    self._stream.flush()
            return
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self.INTERVAL
        if self._progress is None or self._task is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            # No refresh thread: workers may be forked.
            self._progress = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                console=Console(file=self._stream), transient=True, auto_refresh=False,
            )  # fmt: skip
            self._progress.start()
            self._task = self._progress.add_task(self._what, total=total)
        self._progress.update(self._task, completed=done, total=total, refresh=True)
