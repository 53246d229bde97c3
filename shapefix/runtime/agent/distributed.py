"""Scripts for several processes run in this one: the first of them, in a group of one."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
import torch.distributed
import torch.multiprocessing

from . import frames
from .session import Session


class Joined:
    """What `spawn` returns to somebody who wants to join later: there is nothing to wait for."""

    processes: tuple[Any, ...] = ()

    def join(self, *args: Any, **kwargs: Any) -> bool:
        return True

    def pids(self) -> list[int]:
        return []


def install(session: Session) -> None:
    """Have what torch.multiprocessing would spawn called here, and each process group be a group of one."""

    def start(
        fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, *more: Any, **named: Any
    ) -> Any:
        session.observations.write("processes", asked=nprocs, called=frames.site(sys._getframe(1)))
        fn(0, *args)
        return Joined()

    torch.multiprocessing.spawn = start
    torch.multiprocessing.start_processes = start
    if torch.distributed.is_available():
        torch.distributed.init_process_group = _alone(session, torch.distributed.init_process_group)


LAUNCHERS = tuple(
    f"{package}.launchers.subprocess_script"
    for package in (
        "lightning.fabric.strategies",
        "lightning.pytorch.strategies",
        "lightning_fabric.strategies",
        "pytorch_lightning.strategies",
    )
)
"""The modules of Lightning that start the script once more for each GPU but the first."""


def launcher(session: Session, module: ModuleType) -> None:
    """Let Lightning start no other process than this one."""
    kind = module._SubprocessScriptLauncher
    original = kind._call_children_scripts

    def _call_children_scripts(self: Any) -> None:
        session.observations.write(
            "processes", asked=self.num_processes, called=frames.site(sys._getframe(1))
        )
        self.num_processes = 1
        original(self)

    kind._call_children_scripts = _call_children_scripts


def _alone(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def init_process_group(
        backend: Any = None, init_method: Any = None, timeout: Any = None, *more: Any, **named: Any
    ) -> None:
        asked = more[0] if more else named.get("world_size", os.environ.get("WORLD_SIZE", 1))
        session.observations.write("processes", asked=asked, called=frames.site(sys._getframe(1)))
        os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", LOCAL_WORLD_SIZE="1")
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "0")
        kept: dict[str, Any] = {
            name: named[name] for name in ("device_id", "pg_options", "group_name") if name in named
        }
        if timeout is not None:
            kept["timeout"] = timeout
        chosen = backend if torch.cuda.is_available() else "gloo"
        original(chosen, store=torch.distributed.HashStore(), rank=0, world_size=1, **kept)

    return init_process_group
