"""Set up the device of a run, and the settings to try."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from .. import frames
from ..session import Session, steps_done

CPU_FOR_GPU = "cpu-for-gpu"
"""The device of a script for a GPU that runs on the CPU."""
_MEMORY = 80 << 30


@dataclass(frozen=True)
class DeviceOptions:
    """Options for the device: vram of a simulated GPU in bytes; batch is an old and a new size."""

    device: str = "auto"
    vram: int | None = None
    batch: tuple[int, int] | None = None
    checkpointing: bool = False
    bf16: bool = False
    lora: bool = False


def install(
    session: Session, wanted: DeviceOptions, running: Callable[[], str | None]
) -> Callable[[], int] | None:
    """Set up the device; the memory of a simulated GPU is recorded for each step.

    Returns a function for the bytes alive on a simulated GPU; None for any other device.
    """
    from .trials import MemoryTrials, override_batch_size

    if wanted.batch is not None:
        override_batch_size(*wanted.batch)
    if wanted.device == CPU_FOR_GPU:
        from .. import cpu_for_gpu

        cpu_for_gpu.install(int(os.environ.get("WORLD_SIZE", "1")))
    if wanted.device != "fake":
        return None
    from . import adapters, cuda, kernels, placement
    from .autocast import AutocastRules
    from .gpu import FakeGpu, on_device
    from .phases import StepPhases
    from .storages import Storages

    session.sizes_only = True
    storages = Storages(on_device, running)

    def stop(problem: str) -> NoReturn:
        at = frames.site(sys._getframe(1))
        place = "" if at is None else f" at {os.path.basename(at['file'])}:{at['row']}"  # noqa: PTH119
        session.stop(f"memory cannot be forecast{place}: {problem}", unpredictable=True)

    def record_guess() -> None:
        if session.depth and session.guessed_at is None:
            session.guessed_at = frames.site(sys._getframe(1))

    gpu = FakeGpu(storages, stop, record_guess)
    cuda.install(storages, wanted.vram or _MEMORY)
    placement.install(gpu)
    kernels.install(on_device)
    AutocastRules(on_device).install()
    gpu.install()
    trials = MemoryTrials(session, wanted.checkpointing, wanted.bf16)
    if wanted.lora:
        adapters.install(trials.note_adapters)
    StepPhases(session, storages, trials.prepare, trials.context).install()
    return lambda: storages.live


def stop_after_steps(session: Session) -> None:
    """End the script after the wanted steps: tensors without values cannot be evaluated or saved."""

    def stop(*_: object) -> None:
        if session.watches() and session.steps >= session.wanted_steps:
            session.stop(steps_done(session.steps))

    register_optimizer_step_post_hook(stop)


def missing_device(wanted: DeviceOptions) -> str | None:
    """The reason why the requested device, or the package of a trial, is not available, if any."""
    if wanted.device == "cuda" and not torch.cuda.is_available():
        return "torch finds no GPU"
    if wanted.device == "fake" and tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
        return f"--device fake requires torch 2.6 or newer; found {torch.__version__}"
    if wanted.lora:
        from .adapters import missing_peft

        return missing_peft()
    return None
