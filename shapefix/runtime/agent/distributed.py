"""Run scripts for several processes as the first of them, in a process group of one."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

import torch
import torch.distributed
import torch.multiprocessing

from ..protocol import ProcessesRequestedLine
from . import frames
from .session import Session


class FinishedProcesses:
    """The result of `spawn(join=False)` once everything has run."""

    processes: tuple[Any, ...] = ()

    def join(self, *args: Any, **kwargs: Any) -> bool:
        return True

    def pids(self) -> list[int]:
        return []


def install(session: Session) -> None:
    """Call spawned functions directly, and make each process group a group of one."""

    def start(
        fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, *more: Any, **named: Any
    ) -> Any:
        write_request(session, nprocs, sys._getframe(1))
        fn(0, *args)
        return FinishedProcesses()

    torch.multiprocessing.spawn = start
    torch.multiprocessing.start_processes = start
    if torch.distributed.is_available():
        torch.distributed.init_process_group = _group_of_one(session, torch.distributed.init_process_group)


LAUNCHERS = tuple(
    f"{package}.launchers.subprocess_script"
    for package in (
        "lightning.fabric.strategies",
        "lightning.pytorch.strategies",
        "lightning_fabric.strategies",
        "pytorch_lightning.strategies",
    )
)
"""The modules of Lightning that start the script again for each further GPU."""


def patch_launcher(session: Session, module: ModuleType) -> None:
    """Keep Lightning from starting other processes."""
    kind = module._SubprocessScriptLauncher
    original = kind._call_children_scripts

    def _call_children_scripts(self: Any) -> None:
        write_request(session, self.num_processes, sys._getframe(1))
        self.num_processes = 1
        original(self)

    kind._call_children_scripts = _call_children_scripts


def write_request(session: Session, requested: Any, caller: FrameType) -> None:
    """Record that the script requested several processes."""
    session.sink.write(
        ProcessesRequestedLine(kind="processes_requested", requested=requested, called_at=frames.site(caller))
    )


def set_environment() -> None:
    """Set the variables of torchrun for a single process."""
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", LOCAL_WORLD_SIZE="1")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "0")


def _group_of_one(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def init_process_group(
        backend: Any = None, init_method: Any = None, timeout: Any = None, *more: Any, **named: Any
    ) -> None:
        requested = more[0] if more else named.get("world_size", os.environ.get("WORLD_SIZE", 1))
        write_request(session, requested, sys._getframe(1))
        set_environment()
        kept: dict[str, Any] = {
            name: named[name] for name in ("device_id", "pg_options", "group_name") if name in named
        }
        if timeout is not None:
            kept["timeout"] = timeout
        chosen = backend if torch.cuda.is_available() else "gloo"
        original(chosen, store=torch.distributed.HashStore(), rank=0, world_size=1, **kept)

    return init_process_group
