"""Run a command with its own terminal, and keep the end of its messages."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

from shapefix.light_dataclasses import dataclass

_KEPT = 4 << 20
"""The number of bytes kept from the end of the messages."""
_CHUNK = 1 << 16
_FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
_FROM_TERMINAL = ("SIGINT", "SIGQUIT")
"""Signals that the terminal also sends to the command: it decides about them."""

_Handler = Callable[[int, object], None] | signal.Handlers


@dataclass(frozen=True)
class FinishedCommand:
    """The return code of a command, negative for a signal, and the end of its messages."""

    code: int
    messages: bytes


def relay(command: Sequence[str]) -> FinishedCommand:
    """Run a command, and pass on its standard error.

    The command keeps standard input. It keeps standard output, too, unless that is the same file as standard
    error: both go the same way then, so that their order stays. A terminal is replaced by another one of its
    size, so that progress bars stay what they are. Raises OSError if the command cannot be started.
    """
    target = sys.stderr.fileno()
    is_joined = _is_same_file(sys.stdout.fileno(), target)
    source, end = _terminal_like(target) if os.isatty(target) else os.pipe()
    try:
        process = subprocess.Popen(command, stdout=end if is_joined else None, stderr=end, close_fds=False)
    except OSError:
        os.close(source)
        raise
    finally:
        os.close(end)
    with _signals_for(process, source, target):
        messages = _copied(process, source, target)
        return FinishedCommand(process.wait(), messages)


def _is_same_file(one: int, other: int) -> bool:
    try:
        first, second = os.fstat(one), os.fstat(other)
    except OSError:
        return False
    return (first.st_dev, first.st_ino, first.st_rdev) == (second.st_dev, second.st_ino, second.st_rdev)


def _terminal_like(target: int) -> tuple[int, int]:
    """Return both ends of a terminal with the size of another one; it passes bytes on unchanged."""
    import pty
    import termios

    source, end = pty.openpty()
    settings = termios.tcgetattr(end)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(end, termios.TCSANOW, settings)
    _copy_size(target, source)
    return source, end


def _copy_size(terminal: int, other: int) -> None:
    import fcntl
    import termios

    with contextlib.suppress(OSError):
        size = fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(8))
        fcntl.ioctl(other, termios.TIOCSWINSZ, size)


@contextlib.contextmanager
def _signals_for(process: subprocess.Popen[bytes], source: int, target: int) -> Iterator[None]:
    """Leave signals to the command while it runs."""

    def forward(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)

    def resize(_: int, __: object) -> None:
        _copy_size(target, source)

    handlers: dict[str, _Handler] = dict.fromkeys(_FORWARDED, forward)
    handlers |= dict.fromkeys(_FROM_TERMINAL, signal.SIG_IGN)
    if os.isatty(source):
        handlers["SIGWINCH"] = resize
    before = {}
    for name, handler in handlers.items():
        number = getattr(signal, name, None)
        if number is not None:
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
        os.close(source)


def _copied(process: subprocess.Popen[bytes], source: int, target: int) -> bytes:
    """Copy source to target until the command ends; return the last bytes."""
    kept = bytearray()
    writes = True
    while True:
        has_ended = process.poll() is not None
        readable, _, _ = select.select([source], [], [], 0 if has_ended else 0.05)
        if not readable:
            if has_ended:
                # Other processes that it has started may keep the stream open.
                return bytes(kept)
            continue
        data = _read(source)
        if not data:
            process.wait()
            return bytes(kept)
        kept += data
        del kept[: -_KEPT or None]
        if writes:
            writes = _write(target, data)


def _read(source: int) -> bytes:
    try:
        return os.read(source, _CHUNK)
    except OSError as error:
        if error.errno != errno.EIO:  # the last process has closed its end of the terminal
            raise
        return b""


def _write(target: int, data: bytes) -> bool:
    """Write all bytes; false if the reader has gone away."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:
            select.select([], [target], [])
        except OSError:
            return False
    return True
