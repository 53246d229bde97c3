"""Options of the probe's command line, and their conflicts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True)
class ProbeOptions:
    """A command line of `probe`; timeout is in seconds, vram in bytes.

    python is None to find the interpreter; vram is None for no forecast. launcher are the options of torchrun
    for one of several nodes.
    """

    script: str
    arguments: Sequence[str]
    python: str | None
    steps: int
    timeout: float
    device: str
    vram: int | None
    color: str
    quiet: bool
    output_format: str = "full"
    repair: bool = False
    apply: bool = False
    report: str | None = None
    module: bool = False
    processes: int = 1
    overfit: int | None = None
    no_eval: bool = False
    baseline: str | None = None
    full_eval: bool = False
    launcher: Sequence[str] = ()

    @property
    def agent_options(self) -> tuple[str, ...]:
        """The agent's options for the kind of script and of run."""
        module = ("--module",) if self.module else ()
        overfit = () if self.overfit is None else ("--overfit",)
        evaluation = ("--evaluation", "none" if self.no_eval else "full")
        return (*module, *overfit, *(evaluation if self.no_eval or self.full_eval else ()))

    @property
    def may_simulate(self) -> bool:
        """Whether a script for a GPU may get a simulated one instead."""
        return self.device == "auto" and self.processes == 1 and self.overfit is None and not self.full_eval

    @property
    def wanted_steps(self) -> int:
        """The number of training steps."""
        return self.steps if self.overfit is None else self.overfit


def validate_script(options: ProbeOptions) -> str | None:
    """The reason why the script cannot be run, if any."""
    path = Path(options.script)
    if options.module:
        if path.is_file():
            return f"is a file, but -m expects a module; did you mean `shapefix probe {options.script}`?"
        return None
    if path.is_dir():
        if (path / "__main__.py").is_file():
            return None
        return "is a directory without `__main__.py`; pass the training script in it"
    if not path.is_file():
        return "no such file"
    return None if os.access(path, os.R_OK) else "permission denied"


def validate_options(options: ProbeOptions) -> str | None:
    """The first contradiction between options, if any."""
    if options.vram is not None and options.device not in ("auto", "fake"):
        return f"--vram uses a simulated GPU and cannot be combined with --device {options.device}"
    if options.overfit is not None and (options.repair or options.vram is not None or options.processes > 1):
        return "--overfit cannot be combined with --repair, --vram or --nproc"
    if options.overfit is not None and (options.steps > 1 or options.device == "fake"):
        return "--overfit sets the number of steps, and needs a device with values"
    if options.baseline is not None and (
        options.repair or options.vram is not None or options.output_format != "full"
    ):
        return "--baseline cannot be combined with --repair, --vram or --output-format"
    if options.no_eval and options.full_eval:
        return "--no-eval and --full-eval cannot be combined"
    if options.full_eval and (options.vram is not None or options.device == "fake"):
        return "--full-eval needs a device with values"
    if options.apply and not options.repair and options.vram is None:
        return "--apply requires --repair or --vram"
    if options.apply and options.vram is not None and options.output_format != "full":
        return f"--vram --apply prints a diff and excludes --output-format {options.output_format}"
    if options.repair and options.vram is not None:
        return "--vram and --repair cannot be combined"
    if options.processes > 1 and (options.vram is not None or options.device == "fake"):
        return "--nproc cannot be combined with --vram or --device fake"
    if options.launcher and (options.repair or options.vram is not None or options.device == "fake"):
        return "several nodes cannot be combined with --repair, --vram or --device fake"
    if options.processes > 1 and options.script.endswith(".ipynb"):
        return "--nproc does not support notebooks; pass a script or a module"
    if options.repair and options.output_format != "full":
        return f"--repair prints a diff and cannot be combined with --output-format {options.output_format}"
    if options.repair and options.report is not None:
        return "--repair and --report cannot be combined"
    return None
