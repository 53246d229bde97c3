"""`shapefix run`: run a command, and diagnose its error if it fails."""

# ruff: noqa: PTH109

from __future__ import annotations

import io
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace

from shapefix.cli.relay import relay
from shapefix.cli.terminal import echo_err, use_color, width
from shapefix.report.view import View, one_line
from shapefix.sources.text import reason

NOT_EXECUTABLE, NOT_FOUND = 126, 127
"""Exit codes of shells for a command that cannot be started."""


def run_command(command: Sequence[str], color: str) -> int:
    """Run a command and return its exit code; after a signal, end this process by the same one."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        finished = relay(command)
    except FileNotFoundError:
        echo_err(f"error: command not found: {one_line(command[0])}")
        return NOT_FOUND
    except OSError as error:
        echo_err(f"error: {one_line(command[0])}: cannot be started: {reason(error)}")
        return NOT_EXECUTABLE
    if finished.code != 0:
        try:
            _diagnose(finished.messages, command, color)
        except Exception as error:
            # The exit code of the command is what its caller waits for.
            echo_err(f"error: no diagnosis: {type(error).__name__}: {one_line(str(error))}")
    if finished.code < 0:
        _end_by(-finished.code)
        return 128 - finished.code
    return finished.code


def _diagnose(messages: bytes, command: Sequence[str], color: str) -> None:
    # Imported late: a command that succeeds waits for no analysis.
    from shapefix.diagnosis import text_report
    from shapefix.diagnosis.diagnose import diagnose_log
    from shapefix.diagnosis.log_lines import log_lines
    from shapefix.diagnosis.repaired_causes import patch

    found = diagnose_log(log_lines(io.BytesIO(messages)), os.getcwd())
    if found is None:
        return
    view = View(os.getcwd(), width(sys.stderr), use_color(color, sys.stderr), quiet=True)
    if found.session is not None:
        view = replace(view, sources=found.session.source)
    line = "─" * min(view.width, 80)
    echo_err(f"{line}\nshapefix run {one_line(shlex.join(command))}\n")
    for piece in text_report.render(found, view, patch(found, view)):
        sys.stderr.write(piece)
    sys.stderr.flush()


def _end_by(number: int) -> None:
    """End this process by a signal, without a core dump."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
