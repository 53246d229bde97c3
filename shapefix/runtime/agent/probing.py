"""Set the hooks, run the script as Python itself would, and write how it ended."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import os
import sys
import threading
import time
from typing import Any

from ..protocol import StartLine, WriteProtectionLine
from . import isolation, masking
from .session import LineFile, Session, StopProbe, exit_now

_EXIT_SECONDS = 5.0


def main(arguments: list[str]) -> None:
    """Run a command line of the agent. Does not return."""
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
    parser.add_argument("--lora", action="store_true")
    parser.add_argument("--rewrite", action="append", default=[])
    parser.add_argument("--overlay")
    parser.add_argument("--ranks", type=float)
    parser.add_argument("--launched", action="store_true")
    parser.add_argument("--protect")
    parser.add_argument("--module", action="store_true")
    parser.add_argument("--find-writes", action="store_true")
    parser.add_argument("--find-nans", action="store_true")
    parser.add_argument("--overfit", action="store_true")
    parser.add_argument("--evaluation", choices=("none", "short", "full"), default="short")
    parser.add_argument("--cells")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    # Before any import of the script's: a process with threads cannot enter a namespace.
    protection = isolation.protect(options.protect) if options.protect is not None else isolation.NONE
    texts = _texts(options)
    if texts:
        from . import overlay

        overlay.install(texts)
    if options.ranks is not None:
        options.observations += f".{os.environ['RANK']}"
    session = Session(LineFile(options.observations), options.steps)
    session.overfits = options.overfit
    session.evaluation = options.evaluation
    # Ranks would have to agree on them, and the forecast compares steps.
    session.takes_extra_batches = options.ranks is None and options.device != "fake"
    masking.watch_environment(os.path.join(options.saves, "secrets.jsonl"))  # noqa: PTH118
    overlays = [root for root, upper in protection["layers"] if upper]
    session.sink.write(
        WriteProtectionLine(
            kind="write_protection",
            method=protection["method"],
            roots=[root for root, _ in protection["layers"]],
            reason=protection["reason"],
        )
    )
    exceptions = _install_hooks(session, options, overlays)
    code = _run_script(session, exceptions, options)
    _exit_in_time(code)


def _install_hooks(session: Session, options: argparse.Namespace, overlays: list[str]) -> Any:
    """Set all hooks. Ends the process if there is no torch, or no such device."""
    from . import watchdog
    from .import_time import ImportTime

    alone = options.ranks is None
    import_time = ImportTime(options.observations, alone)
    elapsed = 0.0 if not options.ranks else time.time() - options.ranks
    watchdog.start(session, options.timeout, import_time, elapsed, alone=alone)
    if options.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    try:
        import torch
    except ImportError as error:
        session.end("no torch", message=f"{sys.executable} has no torch ({error})")
        exit_now(1)
    from . import disk, disk_calls, distributed, handler_hooks, imports, launching, loss_calls, trainers
    from . import saves as saving
    from .call_sites import CallSites
    from .construction_sites import ConstructionSites
    from .evaluation_limits import limit_generation
    from .exceptions import ExceptionRecorder
    from .fake_gpu import device_setup
    from .loaders import Loaders
    from .memory_timeline import MemoryTimeline
    from .module_calls import ModuleCalls
    from .training import TrainingWatcher
    from .watchers.copies import CopyWatcher
    from .watchers.optimizer_parameters import OptimizerWatcher
    from .watchers.schedules import Schedules
    from .watchers.views import ViewWatcher

    device = device_setup.DeviceOptions(
        _device(options), options.vram, options.batch, options.checkpointing, options.bf16, options.lora
    )
    problem = device_setup.missing_device(device)
    if problem is not None:
        session.end("no device", message=problem)
        exit_now(1)
    exceptions = ExceptionRecorder(session)
    handler_hooks.install(exceptions.caught, lambda path, data: launching.record_source(session, path, data))
    constructions = ConstructionSites()
    constructions.install()
    call_sites = CallSites(session)
    modules = ModuleCalls(session, exceptions, constructions, call_sites)
    memory = device_setup.install(session, device, modules.running)
    session.on_phase = MemoryTimeline(session, memory).begin
    modules.install()
    modules.replicas.install()
    modules.samples.install()
    Schedules(session).install()
    Loaders(session, exceptions, call_sites).install()
    loss_calls.install(session, exceptions, call_sites)
    if options.ranks is None:
        distributed.install(session)
    if options.launched:
        distributed.set_environment()
    optimizers = OptimizerWatcher(constructions)
    optimizers.install()
    ViewWatcher(session, modules).install()
    CopyWatcher(session, modules).install()
    training = TrainingWatcher(session, exceptions, modules, optimizers, call_sites)
    training.install()
    if options.find_writes:
        from .watchers.inplace_writes import InplaceWrites

        writes = InplaceWrites(session, modules.running)
        training.before_backward = lambda loss: writes.check()
        writes.install()
    if options.find_nans:
        from .watchers.nan_origins import NanOrigins

        origins = NanOrigins(session, modules.running)
        training.before_backward = origins.before_backward
        origins.install()
    if options.ranks is not None:
        from . import collectives, node_mirror

        files = options.observations.rpartition(".")[0]
        collectives.install(session, files)
        node_mirror.install(session, files, lambda: _masker(options))
    roots = {os.getcwd(), os.path.dirname(os.path.abspath(options.script))}  # noqa: PTH100, PTH109, PTH120
    roots = {os.getcwd()} if options.module else roots  # noqa: PTH109
    mapped = disk.Disk(session, options.saves, sorted(roots), overlays)
    disk_calls.install(mapped)
    saving.install(mapped)
    imports.after(
        {
            "transformers.generation.utils": lambda module: limit_generation(session, module),
            "transformers.trainer": lambda module: trainers.patch_transformers(session, module),
            "huggingface_hub.hf_api": lambda module: trainers.patch_hub(session, module),
            **dict.fromkeys(trainers.LIGHTNING, lambda module: trainers.patch_lightning(session, module)),
            **dict.fromkeys(
                distributed.LAUNCHERS, lambda module: distributed.patch_launcher(session, module)
            ),
        }
    )
    session.sink.write(
        StartLine(
            kind="start",
            python=sys.version.split()[0],
            executable=sys.executable,
            torch=str(torch.__version__),
            devices=[] if device.device == device_setup.CPU_FOR_GPU else _gpu_names(),
        )
    )
    if options.device == "fake":
        device_setup.stop_after_steps(session)
    _watch_exit(session)
    return exceptions


def _device(options: argparse.Namespace) -> str:
    """The device of a run; several ranks without a GPU take the CPU for it."""
    import torch

    from .fake_gpu.device_setup import CPU_FOR_GPU

    alone = options.ranks is None or options.device != "auto"
    return str(options.device) if alone or torch.cuda.is_available() else CPU_FOR_GPU


def _gpu_names() -> list[str]:
    import torch

    return [torch.cuda.get_device_name(each) for each in range(torch.cuda.device_count())]


def _watch_exit(session: Session) -> None:
    """Record the end of a script by os._exit."""
    from . import frames

    original = os._exit

    def _exit(code: int) -> None:
        if session.watches_process():
            session.end("os._exit", code=code, site=frames.site(sys._getframe(1)))
        original(code)

    os._exit = _exit  # type: ignore[assignment]


def _masker(options: argparse.Namespace) -> masking.Masker:
    known = (*masking.secret_values(os.environ), *masking.secret_arguments(options.arguments))
    added = masking.added_secrets(os.path.join(options.saves, "secrets.jsonl"))  # noqa: PTH118
    return masking.Masker([*known, *added])


def _texts(options: argparse.Namespace) -> dict[str, str]:
    """The files with other texts of the user's files and cells, by their real paths."""
    from . import overlay

    return {} if options.overlay is None else overlay.read(options.overlay)


def _run_script(session: Session, exceptions: Any, options: argparse.Namespace) -> int:
    """Run the script to its end, and write how it ended; returns the exit code."""
    from . import frames, launching

    error: BaseException | None = None
    launch = launching.Launch(
        options.script, options.arguments, options.module, options.cells, options.rewrite, _texts(options)
    )
    try:
        launching.run(launch, session)
    except launching.NothingToRun as reason:
        session.end("missing", message=str(reason))
        return 1
    except BaseException as raised:
        error = raised
        if session.stopped is None and session.watches_process():
            with contextlib.suppress(StopProbe):
                exceptions.stop_at_limit(error)
    if not session.watches_process():
        exit_now(_code(error))  # a fork of the script that ran to the script's end
    if session.stopped is not None:
        exceptions.finish(None)
        session.end("stopped", forced=False)
        return 0
    exceptions.finish(error)
    if error is None:
        session.end("finished")
        return 0
    where = frames.innermost(error.__traceback__)
    if isinstance(error, SystemExit):
        usage_error = _code(error) == 2 and frames.passes_through(
            error.__traceback__, "argparse.py", "click", "fire"
        )
        session.end(
            "exit",
            code=_code(error),
            message=_text(error),
            site=None if where is None else where[1],
            usage_error=usage_error,
        )
        if isinstance(error.code, str):
            sys.stderr.write(error.code + "\n")
        return _code(error)
    session.end("uncaught", exceptions=exceptions.uncaught(error))
    _print_exception(error)
    return 1


def _code(error: BaseException | None) -> int:
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    return 0 if error is None or isinstance(error, StopProbe) else 1


def _text(error: SystemExit) -> str | None:
    return error.code[:500] if isinstance(error.code, str) else None


def _print_exception(error: BaseException) -> None:
    """Print an exception as Python does, without the agent's own frames."""
    from . import frames

    trace = error.__traceback__
    while trace is not None and not frames.is_users(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    with contextlib.suppress(Exception):
        sys.excepthook(type(error), error.with_traceback(trace or error.__traceback__), trace)


def _exit_in_time(code: int) -> None:
    """Run the exit handlers of the process, for a few seconds at most, and end it."""
    timer = threading.Timer(_EXIT_SECONDS, exit_now, [code])
    timer.daemon = True
    timer.start()
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()
    exit_now(code)
