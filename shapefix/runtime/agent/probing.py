"""Sets the hooks, runs the script as python itself would, and writes how it ended."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import os
import sys
import threading
import time
from typing import Any

from .session import Observations, Session, StopProbe, leave

_EXIT_PATIENCE = 5.0


def main(arguments: list[str]) -> None:
    """Run a command line of the agent. Does not return: the process ends here."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--observations", required=True)
    parser.add_argument("--saves", required=True)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--vram", type=int)
    parser.add_argument("--batch", type=int, nargs=2)
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--rewrite", action="append", default=[])
    parser.add_argument("--overlay")
    parser.add_argument("--ranks", type=float)
    parser.add_argument("--module", action="store_true")
    parser.add_argument("--cells")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    asked = parser.parse_args(arguments)
    if asked.overlay is not None:
        from . import overlay

        overlay.install(overlay.read(asked.overlay))
    if asked.ranks is not None:
        asked.observations += f".{os.environ['RANK']}"
    session = Session(Observations(asked.observations), asked.steps)
    failures = _installed(session, asked)
    code = _ran(session, failures, asked)
    _leave_in_time(code)


def _installed(session: Session, asked: argparse.Namespace) -> Any:
    """Set all hooks. Ends the process where there is no torch, or no such device."""
    from . import watchdog

    alone = asked.ranks is None
    watchdog.start(session, asked.timeout, 0.0 if alone else time.time() - asked.ranks, alone=alone)
    if asked.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    try:
        import torch
    except ImportError as error:
        session.end("no torch", message=str(error), python=sys.executable)
        leave(1)
    from . import caught, disk, disk_calls, distributed, imports, launching, loss_calls, trainers
    from . import saves as saving
    from .call_sites import Visits
    from .construction import Births
    from .failures import Failures
    from .fake_gpu import device_setup
    from .loaders import Loaders
    from .memory_timeline import Timeline
    from .module_calls import Calls
    from .training import Training
    from .watchers.copies import Copies
    from .watchers.optimizer_parameters import Held
    from .watchers.views import Views

    wanted = device_setup.Wanted(asked.device, asked.vram, asked.batch, asked.checkpointing, asked.bf16)
    lacking = device_setup.lacking(wanted)
    if lacking is not None:
        session.end("no device", message=lacking)
        leave(1)
    failures = Failures(session)
    caught.install(failures.caught, lambda path, data: launching.source(session, path, data))
    births = Births()
    births.install()
    visits = Visits(session)
    calls = Calls(session, failures, births, visits)
    session.phase = Timeline(session, device_setup.install(session, wanted, calls.running)).begin
    calls.install()
    Loaders(session, failures, visits).install()
    loss_calls.install(session, failures, visits)
    if asked.ranks is None:
        distributed.install(session)
    held = Held(births)
    held.install()
    Views(session, calls).install()
    Copies(session, calls).install()
    Training(session, failures, calls, held, visits).install()
    if asked.ranks is not None:
        from . import collectives

        collectives.install(session, asked.observations.rpartition(".")[0])
    roots = {os.getcwd(), os.path.dirname(os.path.abspath(asked.script))}  # noqa: PTH100, PTH109, PTH120
    mapped = disk.Disk(session, asked.saves, [os.getcwd()] if asked.module else sorted(roots))  # noqa: PTH109
    disk_calls.install(mapped)
    saving.install(mapped)
    imports.after(
        {
            "transformers.trainer": lambda module: trainers.trainer(session, module),
            "huggingface_hub.hf_api": lambda module: trainers.hub(session, module),
            **dict.fromkeys(trainers.LIGHTNING, lambda module: trainers.lightning(session, module)),
            **dict.fromkeys(distributed.LAUNCHERS, lambda module: distributed.launcher(session, module)),
        }
    )
    session.observations.write(
        "start",
        python=sys.version.split()[0],
        executable=sys.executable,
        torch=torch.__version__,
        devices=[torch.cuda.get_device_name(each) for each in range(torch.cuda.device_count())],
    )
    if asked.device == "fake":
        device_setup.stop_in_time(session)
    _watch_exit(session)
    return failures


def _watch_exit(session: Session) -> None:
    """A script that ends itself by os._exit leaves a note of it."""
    from . import frames

    original = os._exit

    def _exit(code: int) -> None:
        if session.watches_process():
            session.end("os._exit", code=code, site=frames.site(sys._getframe(1)))
        original(code)

    os._exit = _exit  # type: ignore[assignment]


def _ran(session: Session, failures: Any, asked: argparse.Namespace) -> int:
    """Run the script to its end, and write what that was; returns the exit code."""
    from . import frames, launching

    error: BaseException | None = None
    launch = launching.Launch(asked.script, asked.arguments, asked.module, asked.cells, asked.rewrite)
    try:
        launching.run(launch, session)
    except launching.Missing as missing:
        session.end("missing", message=str(missing))
        return 1
    except BaseException as raised:
        error = raised
    if not session.watches_process():
        leave(_code(error))  # a fork of the script that has run to the script's end
    if session.stopped is not None:
        failures.finish(None)
        session.end("stopped", forced=False)
        return 0
    failures.finish(error)
    if error is None:
        session.end("finished")
        return 0
    where = frames.innermost(error.__traceback__)
    if isinstance(error, SystemExit):
        usage = _code(error) == 2 and frames.passes(error.__traceback__, "argparse.py", "click", "fire")
        session.end("exit", code=_code(error), text=_text(error), site=where and where[1], usage=usage)
        if isinstance(error.code, str):
            sys.stderr.write(error.code + "\n")
        return _code(error)
    session.end("uncaught", failures=failures.uncaught(error))
    _print(error)
    return 1


def _code(error: BaseException | None) -> int:
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    return 0 if error is None or isinstance(error, StopProbe) else 1


def _text(error: SystemExit) -> str | None:
    return error.code[:500] if isinstance(error.code, str) else None


def _print(error: BaseException) -> None:
    """Show an exception as python does, without the frames of the agent at its head."""
    from . import frames

    trace = error.__traceback__
    while trace is not None and not frames.is_users(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    with contextlib.suppress(Exception):
        sys.excepthook(type(error), error.with_traceback(trace or error.__traceback__), trace)


def _leave_in_time(code: int) -> None:
    """Do what is registered for the end of the process, but let nothing hold it up."""
    timer = threading.Timer(_EXIT_PATIENCE, leave, [code])
    timer.daemon = True
    timer.start()
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    leave(code)
