"""Answers of shapefix on folders of files, each in a process of its own, with its CPU time and memory."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ChildAnswer:
    """Output of a command in a child process, and what it took: seconds of CPU, MB of memory at the peak.

    code is its exit code, negative for a signal. Memory inherited from the parent does not count: other tests
    of that process may have imported torch.
    """

    code: int
    output: str
    seconds: float
    megabytes: float


def write_folder(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files of a program."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def answer_of(command: Sequence[str], folder: Path, seconds: int = 60, megabytes: int = 3_000) -> ChildAnswer:
    """Run a command of shapefix in folder, in a forked process limited to this time and memory."""
    from shapefix.cli.main import run

    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        sys.stdout.flush()
        inherited = _resident()
        child = os.fork()
        if child == 0:
            code = 70
            try:
                _limit(seconds, megabytes)
                os.chdir(folder)
                with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                    try:
                        code = run(command)
                    except BaseException:
                        output.write("internal error: " + traceback.format_exc())
                output.flush()
            finally:
                os._exit(code)
        _, status, used = os.wait4(child, 0)
        output.seek(0)
        return ChildAnswer(
            os.waitstatus_to_exitcode(status),
            output.read(),
            used.ru_utime + used.ru_stime,
            used.ru_maxrss / 1024 - inherited,
        )


def _resident() -> float:
    """Memory of this process, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / (1 << 20)


def _mapped() -> int:
    """Address space of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()


def _limit(seconds: int, megabytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    # The process of the tests may have more than that already: libraries map gigabytes.
    most = _mapped() + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
