"""Run the agent in the user's interpreter, and end it with all processes started by it."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from shapefix.runtime.agent.import_time import SUFFIX, longest_import

_TOKEN = "SHAPEFIX_PROBE"
_TAIL = 64 * 1024
_GRACE = 5.0
_RENDEZVOUS = 600.0
_PATIENCE = 2.0
_POLL = 0.2
_ENDS = 1000  # reads of a terminal that find the end of the input
_AGENT = Path(__file__).parent / "agent" / "__main__.py"
_ISOLATION = _AGENT.with_name("isolation.py")

_OFFLINE = {
    "CLEARML_OFFLINE_MODE": "1",
    "COMET_START_ONLINE": "0",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "NEPTUNE_MODE": "offline",
    "SWANLAB_MODE": "disabled",
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
}
_IN_FOLDER = {
    "COMET_OFFLINE_DIRECTORY": "comet",
    "TEMP": "tmp",
    "TMP": "tmp",
    "TMPDIR": "tmp",
    "WANDB_CACHE_DIR": "wandb/cache",
    "WANDB_DIR": "wandb",
}
_QUIET = {
    "MPLBACKEND": "Agg",  # a window would wait to be closed
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONFAULTHANDLER": "1",
    "PYTHONUNBUFFERED": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TORCHDYNAMO_DISABLE": "1",  # sizes are the same, without the time to compile
}


@dataclass(frozen=True)
class ProcessResult:
    """How the process ended: its exit code (negative: the signal), and the end of its output."""

    code: int
    killed: bool
    seconds: float
    output: str


def run_agent(
    python: str,
    script: str,
    arguments: Sequence[str],
    folder: Path,
    steps: int,
    timeout: float,
    options: Sequence[str] = (),
    processes: int = 1,
    protection: Path | None = None,
    while_running: Callable[[], bool] | None = None,
    launcher: Sequence[str] = (),
) -> ProcessResult:
    """Run a script under the agent in the current folder, and wait for its end.

    options are further options of the agent, like `--device fake`. Several processes are started by torchrun,
    and each appends its rank to the name of its observations. launcher are torchrun's options for one of
    several nodes. protection is a file with the plan to protect
    the working tree. while_running is called several times a second until it returns False.

    folder gets the observations (observations.jsonl) and all files that the script saves; timeout is in
    seconds, without the imports of libraries. When this function returns, or raises KeyboardInterrupt,
    neither the agent nor a process that it started is running. Raises OSError if the interpreter cannot be
    started.
    """
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    (folder / "wandb" / "cache").mkdir(parents=True, exist_ok=True)
    token = secrets.token_hex(8)
    environment = _environment(os.environ, folder) | {_TOKEN: token}
    launch: tuple[str, ...] = (python,)
    if processes > 1:
        given = launcher or ("--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", str(processes))
        launch = (python, "-m", "torch.distributed.run", *given)
        if protection is not None:
            # The ranks share what they write.
            launch = (python, str(_ISOLATION), str(protection), *launch)
        # Nodes start at different times, and wait for each other first.
        options = (*options, "--ranks", "0" if launcher else str(time.time()))
        environment.setdefault("OMP_NUM_THREADS", "1")  # otherwise torchrun prints a long warning
    if protection is not None:
        options = (*options, "--protect", str(protection))
    command = [
        *(*launch, str(_AGENT), "--observations", str(folder / "observations.jsonl"), "--saves", str(folder)),
        *("--steps", str(steps), "--timeout", str(timeout), *options, script, *arguments),
    ]
    imports = f"{glob.escape(str(folder))}/observations.jsonl*{SUFFIX}"
    start = time.monotonic()
    with _standard_input() as stdin:
        child = subprocess.Popen(
            command,
            env=environment,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert child.stdout is not None
        tail = _Tail(child.stdout)
        killed = False
        try:
            try:
                most = timeout + _GRACE * processes + (_RENDEZVOUS if launcher else 0.0)
                _wait(child, most, lambda: longest_import(imports), while_running)
            except subprocess.TimeoutExpired:
                killed = True
        finally:
            _end(child, token)
    tail.join()
    return ProcessResult(child.returncode, killed, time.monotonic() - start, tail.text())


def _wait(
    child: subprocess.Popen[bytes],
    seconds: float,
    imports: Callable[[], float],
    while_running: Callable[[], bool] | None,
) -> None:
    """Wait for a process, and for as long as its imports take. Raises subprocess.TimeoutExpired."""
    start = time.monotonic()
    while while_running is not None and time.monotonic() + _POLL < start + seconds:
        try:
            child.wait(_POLL)
            return
        except subprocess.TimeoutExpired:
            if not while_running():
                break
    while True:
        left = start + seconds + imports() - time.monotonic()
        try:
            child.wait(max(0.0, left))
            return
        except subprocess.TimeoutExpired:
            if start + seconds + imports() <= time.monotonic():
                raise


@contextlib.contextmanager
def _standard_input() -> Iterator[int]:
    """The standard input of a script: a terminal if ours is one, but at its end in any case.

    Scripts ask the terminal for its size; a read from it must not wait.
    """
    try:
        import pty
        import termios

        if not os.isatty(0):
            raise OSError
        own, other = pty.openpty()
    except (ImportError, OSError):
        yield subprocess.DEVNULL
        return
    try:
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetwinsize(other, termios.tcgetwinsize(0))
        with contextlib.suppress(OSError):
            os.write(own, b"\x04" * _ENDS)
        yield other
    finally:
        os.close(own)
        os.close(other)


def _environment(own: Mapping[str, str], folder: Path) -> dict[str, str]:
    inside = {name: str(folder / part) for name, part in _IN_FOLDER.items()}
    tracking = {"MLFLOW_TRACKING_URI": (folder / "mlruns").as_uri()}
    return {**own, **_OFFLINE, **inside, **tracking, **_QUIET}


class _Tail(threading.Thread):
    """Reads a pipe to its end, and keeps the last part."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._kept = b""
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self._pipe.fileno(), 1 << 16):
                self._kept = (self._kept + chunk)[-_TAIL:]

    def join(self, timeout: float | None = _PATIENCE) -> None:
        # A process that was not killed may keep the other end open.
        super().join(timeout)

    def text(self) -> str:
        return self._kept.decode("utf-8", "replace")


def _end(child: subprocess.Popen[bytes], token: str) -> None:
    """Kill the child, its process group, and processes outside the group with our token."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    child.wait()
    for process in _marked(token):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def _marked(token: str) -> Iterator[int]:
    """The processes with our inherited environment, on systems with access to it."""
    if not sys.platform.startswith("linux"):
        return
    mark = f"{_TOKEN}={token}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)
