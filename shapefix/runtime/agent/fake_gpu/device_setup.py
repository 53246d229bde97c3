"""Sets the device that a run is asked for, and what it tries."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from .. import frames
from ..session import Session

_MEMORY = 80 << 30


@dataclass(frozen=True)
class Wanted:
    """What a run is to be: vram in bytes, of a GPU that is not there; batch is a size and what it becomes."""

    device: str = "auto"
    vram: int | None = None
    batch: tuple[int, int] | None = None
    checkpointing: bool = False
    bf16: bool = False


def install(session: Session, wanted: Wanted, running: Callable[[], str | None]) -> Callable[[], int] | None:
    """Set the device; a GPU that is not there has its memory counted, step by step.

    Returns what tells how many bytes live on it; None for any other device.
    """
    from .trials import Trials, batches

    if wanted.batch is not None:
        batches(*wanted.batch)
    if wanted.device != "fake":
        return None
    from . import cuda, kernels, placement
    from .autocast import Casts
    from .gpu import Gpu, on_device
    from .phases import Phases
    from .storages import Storages

    session.sizes_only = True
    storages = Storages(on_device, running)

    def refuse(what: str) -> NoReturn:
        at = frames.site(sys._getframe(1))
        place = "" if at is None else f" at {os.path.basename(at['file'])}:{at['row']}"  # noqa: PTH119
        session.stop(f"it cannot be forecast{place}: {what}", unforeseen=True)

    def guessed() -> None:
        if session.depth and session.guess is None:
            session.guess = frames.site(sys._getframe(1))

    gpu = Gpu(storages, refuse, guessed)
    cuda.install(storages, wanted.vram or _MEMORY)
    placement.install(gpu)
    kernels.install(on_device)
    Casts(on_device).install()
    gpu.install()
    trials = Trials(session, wanted.checkpointing, wanted.bf16)
    Phases(session, storages, trials.prepare, trials.around).install()
    return lambda: storages.live


def stop_in_time(session: Session) -> None:
    """End the script once the wanted steps are made: what has no values is neither evaluated nor saved."""

    def stop(*_: object) -> None:
        if session.watches() and session.steps >= session.wanted_steps:
            session.stop(f"{session.steps} training step{'' if session.steps == 1 else 's'} made")

    register_optimizer_step_post_hook(stop)


def lacking(wanted: Wanted) -> str | None:
    """Why the device cannot be had; None where it can."""
    if wanted.device == "cuda" and not torch.cuda.is_available():
        return "torch finds no GPU here"
    if wanted.device == "fake" and tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        return f"--device fake needs torch 2.6 or newer, and this is {torch.__version__}"
    return None
