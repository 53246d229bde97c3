"""Python processes that start with torch already imported: forks of one server, which imports it once.

Where a file in the folder of the process mentions transformers or datasets, these are imported already, too.

`interpreter()` names a program to give to the probe as the user's interpreter. It passes its arguments,
environment, folder and streams to the server, waits for the fork that runs the script, and ends as that does.
Where the fork ends, so does its process group; where the program itself is killed, the fork is killed too.
The real interpreter runs everything else: `-m` and `-c`, and environments that change how Python starts.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

STARTUP = {
    # What the probe sets for every run, and the tests for theirs.
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONFAULTHANDLER": "1",
    "PYTHONUNBUFFERED": "1",
    "TORCHDYNAMO_DISABLE": "1",
}

PROGRAM = """\
#!{python} -IS
import json, os, signal, socket, sys

arguments, environment = sys.argv[1:], dict(os.environ)
known = {{
    name: value
    for name, value in environment.items()
    if name.startswith({names!r}) and name != "PYTHONPATH"
}}
script = arguments[:1] and arguments[0].endswith(".py")
if not script or known != {startup!r}:
    os.execv({python!r}, [{python!r}, *arguments])
def mentions(name):
    with open(name, "rb") as file:
        text = file.read()
    return b"transformers" in text or b"datasets" in text


names = [name for name in os.listdir() if name.endswith(".py") and os.path.isfile(name)]
address = {addresses!r}[any(map(mentions, names))]
request = json.dumps([arguments, environment, os.getcwd()]).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect(address)
    socket.send_fds(server, [len(request).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(request)
    for stream in (0, 1, 2):
        os.close(stream)
    code = int.from_bytes(server.recv(4), "big", signed=True)
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""
NAMES = ("PYTHON", "OMP_", "TORCH", "LD_")
"""The first letters of variables that are read while Python, or torch, starts."""


@functools.cache
def interpreter() -> str:
    """Start the server on first use; return the path of the program, in `bin` as in a virtual environment."""
    if not sys.platform.startswith("linux"):
        return sys.executable
    folder = Path(tempfile.mkdtemp(prefix="fork-server-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    environment = os.environ | STARTUP
    environment.pop("PYTHONPATH", None)  # each fork adds its own
    startup = {name: value for name, value in environment.items() if name.startswith(NAMES)}
    program = folder / "bin" / "python"
    program.parent.mkdir()
    addresses = [str(folder / name) for name in ("torch", "transformers")]
    program.write_text(
        PROGRAM.format(python=sys.executable, names=NAMES, startup=startup, addresses=addresses),
        encoding="utf-8",
    )
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as larger:
        for each, address in zip((listener, larger), addresses, strict=True):
            each.bind(address)
            each.listen()
        # The server ends with its standard input, that is, with this process. It runs from a string, so that
        # the agent does not take the frames below its own for the user's.
        server = subprocess.Popen(
            [
                sys.executable,
                "-c",
                Path(__file__).read_text("utf-8"),
                str(listener.fileno()),
                str(larger.fileno()),
            ],
            env=environment,
            cwd="/",  # the folder of this process may be gone when the second server imports its modules
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(listener.fileno(), larger.fileno()),
            start_new_session=True,
        )
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"  # so that no time limit of a test includes the import
    return str(program)


def virtual_environment() -> str:
    """A folder to name as VIRTUAL_ENV, so that `shapefix probe` takes the program for the user's Python."""
    return str(Path(interpreter()).parents[1])


def serve(listener: socket.socket, larger: socket.socket | None = None) -> None:
    """Fork for every connection, and answer with the exit code, until standard input ends.

    The first connection to larger is left to a server of its own, with more modules.
    """
    polled = select.poll()
    polled.register(0, 0)  # the end is reported without being asked for
    polled.register(listener, select.POLLIN)
    if larger is not None:
        polled.register(larger, select.POLLIN)
    connections: dict[int, tuple[socket.socket, int]] = {}
    forks: dict[int, int] = {}
    while True:
        for descriptor, _ in polled.poll():
            if descriptor == 0:
                return
            if larger is not None and descriptor == larger.fileno():
                polled.unregister(larger)
                if os.fork() == 0:
                    for other, _ in connections.values():
                        other.close()
                    for each in forks:
                        os.close(each)
                    listener.close()
                    import_more()
                    serve(larger)
                    os._exit(0)
                larger.close()
                larger = None
            elif descriptor == listener.fileno():
                connection, _ = listener.accept()
                child = os.fork()
                if child == 0:
                    for other, _ in connections.values():
                        other.close()
                    for each in forks:
                        os.close(each)
                    listener.close()
                    if larger is not None:
                        larger.close()
                    _become(connection)
                fork = os.pidfd_open(child)
                connections[connection.fileno()] = connection, child
                forks[fork] = connection.fileno()
                polled.register(connection, 0)
                polled.register(fork, select.POLLIN)
            elif descriptor in forks:
                connection, child = connections.pop(forks.pop(descriptor))
                _kill(child)
                _, status = os.waitpid(child, 0)
                with contextlib.suppress(OSError):
                    connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
                polled.unregister(descriptor)
                polled.unregister(connection)
                connection.close()
                os.close(descriptor)
            elif descriptor in connections:
                _kill(connections[descriptor][1])


def import_more() -> None:
    """Import the modules that most scripts with transformers load while they run."""
    import datasets
    import transformers

    for name in (
        "AutoModelForSequenceClassification",
        "AutoTokenizer",
        "BertForSequenceClassification",
        "DataCollatorWithPadding",
        "GPT2LMHeadModel",
        "Trainer",
        "TrainingArguments",
    ):
        getattr(transformers, name)
    assert datasets


def _kill(child: int) -> None:
    """Kill a fork and its process group."""
    for kill in (os.kill, os.killpg):
        with contextlib.suppress(OSError):
            kill(child, signal.SIGKILL)


def _become(connection: socket.socket) -> NoReturn:
    """Turn this process into the one that the request describes, and run its script."""
    os.setsid()
    length, streams, _, _ = socket.recv_fds(connection, 8, 3)
    request = b""
    while len(request) < int.from_bytes(length, "big"):
        request += connection.recv(1 << 16)
    connection.close()
    for descriptor, stream in enumerate(streams):
        os.dup2(stream, descriptor)
        os.close(stream)
    sys.argv, environment, folder = json.loads(request)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # read TMPDIR again
    added = environment.get("PYTHONPATH", "")
    script = Path(sys.argv[0]).absolute()
    sys.path[:0] = [str(script.parent), *filter(None, added.split(os.pathsep))]
    runpy.run_path(str(script), run_name="__main__")
    sys.exit()


if __name__ == "__main__":
    del sys.path[0]
    import torch

    assert torch.get_num_threads() == 1
    torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 0.1)  # the first optimizer imports torch._dynamo
    print("ready", flush=True)
    serve(*(socket.socket(fileno=int(each)) for each in sys.argv[1:]))
