"""`shapefix run`: the command keeps terminal, signals and exit code, and its error is diagnosed."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import ROOT, Project, program, project_in_a_folder  # noqa: F401

from shapefix.cli.relay import relay

pytestmark = pytest.mark.slow

FAILING = """\
import sys
print("to standard output")
def fc(x):
    raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)")
fc(1)
"""


def test_the_error_of_a_failing_command_is_diagnosed(project: Project) -> None:
    project(train=FAILING)
    ran = program("run", "--", sys.executable, "train.py")
    plain = subprocess.run([sys.executable, "train.py"], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, plain.stdout)
    assert ran.stderr.startswith(plain.stderr)
    diagnosis = ran.stderr.removeprefix(plain.stderr).decode()
    assert "The tensor has a last size of 3, but the layer or matrix takes 4." in diagnosis
    assert "train.py:5  fc(1)" in diagnosis


@pytest.mark.parametrize(
    ("code", "expected"),
    [("import sys; sys.stderr.write('x' * 200_000); sys.exit(0)", 0), ("import sys; sys.exit(7)", 7)],
)
def test_output_and_exit_codes_pass_unchanged(project: Project, code: str, expected: int) -> None:
    project()
    ran = program("run", sys.executable, "-c", code)
    plain = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (expected, plain.stdout, plain.stderr)


def test_a_signal_ends_both(project: Project) -> None:
    project()
    ran = program("run", "sh", "-c", "kill -9 $$")
    assert ran.returncode == -signal.SIGKILL


def test_commands_that_cannot_be_started(project: Project) -> None:
    folder = project(script="print()")
    assert program("run", "no-such-program").returncode == 127
    assert program("run", folder / "script.py").returncode == 126


def _in_terminal(code: str, folder: Path, keys: bytes = b"") -> tuple[int, str]:
    """Run a command with `shapefix run` in a terminal; return its exit code and what the terminal shows.

    keys are pressed when it shows "ready".
    """
    script = folder / "script.py"
    script.write_text(code)
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["PYTHONPATH"] = str(ROOT)
        arguments = [sys.executable, "-m", "shapefix", "run", "--", sys.executable, str(script)]
        os.execv(sys.executable, arguments)
    shown = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            data = os.read(terminal, 4096)
        except OSError:
            break
        if not data:
            break
        shown += data
        if keys and b"ready" in shown:
            os.write(terminal, keys)
            keys = b""
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode()


def test_a_command_in_a_terminal_keeps_it(tmp_path: Path) -> None:
    code = """\
import os, sys
print([os.isatty(stream) for stream in (0, 1, 2)], os.get_terminal_size(2))
for step in range(20):
    print("out", step, flush=True)
    print("err", step, file=sys.stderr, flush=True)
name = input("ready? ")
print("hello", name)
sys.exit(5)
"""
    status, shown = _in_terminal(code, tmp_path, b"ana\n")
    assert status == 5
    assert "[True, True, True] os.terminal_size(columns=0, lines=0)" in shown
    order = [line for line in shown.splitlines() if line.startswith(("out", "err"))]
    assert order == [f"{name} {step}" for step in range(20) for name in ("out", "err")]
    assert "hello ana" in shown


def test_an_interrupt_reaches_the_command(tmp_path: Path) -> None:
    code = """\
import time
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("cleaned up")
    raise SystemExit(4)
"""
    status, shown = _in_terminal(code, tmp_path, b"\x03")
    assert status == 4
    assert "cleaned up" in shown
    assert "Traceback" not in shown


def test_a_termination_reaches_the_command(tmp_path: Path) -> None:
    code = """\
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(6))
print("ready", flush=True)
time.sleep(60)
"""
    process = subprocess.Popen(
        [sys.executable, "-m", "shapefix", "run", sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.terminate()
    assert process.wait(timeout=30) == 6
    process.stdout.close()


def test_background_processes_do_not_delay_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    start = time.monotonic()
    finished = relay(["sh", "-c", "sleep 5 & echo done >&2; exit 3"])
    assert (finished.code, finished.messages) == (3, b"done\n")
    assert time.monotonic() - start < 3
    assert capfd.readouterr().err == "done\n"


def test_the_end_of_long_messages_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    finished = relay([sys.executable, "-c", "import sys; sys.stderr.write('a' * 6_000_000 + 'end')"])
    assert len(finished.messages) == 4 << 20
    assert finished.messages.endswith(b"aend")
    assert len(capfd.readouterr().err) == 6_000_003
