"""What a command line of probe asks for, and what of it cannot be."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Asked:
    """A command line of probe: python None is for the interpreter that fits.

    timeout is in seconds, vram in bytes; None is for no forecast.
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

    @property
    def options(self) -> tuple[str, ...]:
        """The agent's options that say what script names."""
        return ("--module",) if self.module else ()


def unfit(asked: Asked) -> str | None:
    """Why what was named cannot be run, None where it can."""
    path = Path(asked.script)
    if asked.module:
        if path.is_file():
            return f"is a file, and -m takes a module; did you mean `shapefix probe {asked.script}`?"
        return None
    if path.is_dir():
        if (path / "__main__.py").is_file():
            return None
        return "is a folder without `__main__.py`; name the script in it that trains"
    if not path.is_file():
        return "there is no such file"
    return None if os.access(path, os.R_OK) else "permission denied"


def contradiction(asked: Asked) -> str | None:
    """What of a command line cannot be asked for together, None where all can."""
    if asked.vram is not None and asked.device not in ("auto", "fake"):
        return f"--vram forecasts for a GPU that is not there, not for --device {asked.device}"
    if asked.apply and not asked.repair:
        return "--apply writes what --repair has proved; give both"
    if asked.repair and asked.vram is not None:
        return "--vram forecasts the memory of a step, and --repair makes one work; ask for one of them"
    if asked.repair and asked.script.endswith(".ipynb") and not asked.module:
        return "--repair writes Python files, and no notebooks; name a script that trains"
    if asked.processes > 1 and (asked.repair or asked.vram is not None or asked.device == "fake"):
        return "--nproc compares the ranks of one run; it goes without --repair, --vram and --device fake"
    if asked.processes > 1 and asked.script.endswith(".ipynb"):
        return "a notebook is one process; --nproc takes a script or a module"
    if asked.repair and asked.output_format != "full":
        return f"--repair shows a diff with its proof, and has no --output-format {asked.output_format}"
    if asked.repair and asked.report is not None:
        return "--repair shows a diff with its proof, and writes no --report; ask for one of them"
    return None
