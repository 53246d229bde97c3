"""Run one script under the probe, read the observations, and delete all files of the run."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from shapefix.diagnostics import path_of
from shapefix.runtime import agent_process, observations
from shapefix.runtime.agent import masking
from shapefix.runtime.agent.masking import Masker
from shapefix.runtime.agent_process import ProcessResult
from shapefix.runtime.first_forward import FirstForward
from shapefix.runtime.observations import Observations
from shapefix.runtime.protocol import LoopTruncatedLine, StopLine
from shapefix.runtime.working_tree import left_by_run, protection_plan, working_tree
from shapefix.sources.notebooks import cells
from shapefix.sources.text import read_bytes


@dataclass(frozen=True)
class ProbeRun:
    """One run: the script as given, the observations, and the result of its process.

    ranks has the observations of each rank of a run with several processes; observed are those of rank 0.
    Secrets are masked in all of these; masker does it in other texts of a report.
    """

    script: str
    observed: Observations
    process: ProcessResult
    timeout: float
    ranks: tuple[Observations, ...] = ()
    masker: Masker = field(default_factory=Masker, repr=False)

    @property
    def trained(self) -> bool:
        """Whether an optimizer step was made."""
        return self.observed.steps > 0

    @property
    def reached(self) -> bool:
        """Whether the run reached a batch or a model."""
        return bool(self.observed.modules or self.observed.batches)

    @property
    def has_device(self) -> bool:
        """Whether the requested device was there."""
        return self.observed.end is None or self.observed.end["how"] != "no device"

    @property
    def cut_short(self) -> bool:
        """Whether the probe ended the script or one of its loops early."""
        every = self.ranks or (self.observed,)
        return any(each.first(StopLine) or each.first(LoopTruncatedLine) for each in every)

    @property
    def complete(self) -> bool:
        """Whether the executed part works: it made a training step, or ended after it called a model.

        Of several ranks, at least one did, and the others did too or wait for it.
        """
        done = [(_complete(each), each.waiting) for each in self.ranks or (self.observed,)]
        return any(well for well, _ in done) and all(well or waits is not None for well, waits in done)


def _complete(observed: Observations) -> bool:
    end = observed.end
    if end is None or end["how"] in ("missing", "no torch", "no device"):
        return False
    if any(stop["unpredictable"] for stop in observed.of(StopLine)):
        return False
    well = end["how"] in ("finished", "stopped") or (end["how"] == "exit" and end["code"] == 0)
    return well and (observed.steps > 0 or bool(observed.modules))


def probe_script(
    python: str,
    script: str,
    arguments: Sequence[str],
    steps: int,
    timeout: float,
    options: Sequence[str] = (),
    processes: int = 1,
    returned: Callable[[Observations], None] | None = None,
    launcher: Sequence[str] = (),
) -> ProbeRun:
    """Run a script with its arguments in the current folder, for a number of training steps.

    script is a file, a folder with a `__main__.py`, a notebook, or with `--module` in options the name of a
    module. timeout is in seconds; options are further options of the agent. Several processes are ranks that
    torchrun starts; launcher are its options for one of several nodes. returned is called with the
    observations once a model has returned, while the script still runs.

    When this function returns, or is interrupted, no process of the run is left, and the files that the
    script saved are deleted. Raises OSError if the interpreter cannot be started, and Unreadable for a
    notebook without Python.
    """
    with (
        sigterm_as_interrupt(),
        tempfile.TemporaryDirectory(prefix="shapefix-probe-", ignore_cleanup_errors=True) as name,
        contextlib.ExitStack() as stack,
    ):
        folder = Path(name)
        every = (*options, *_cells(script, folder))
        tree = working_tree("." if "--module" in options else script, folder)
        plan = folder / "protection.json"
        plan.write_text(json.dumps(protection_plan(tree, folder, stack)), "utf-8")

        def masker_now() -> Masker:
            known = (*masking.secret_values(os.environ), *masking.secret_arguments(arguments))
            return Masker([*known, *masking.added_secrets(str(folder / "secrets.jsonl"))])

        wait = returned and FirstForward(folder / "observations.jsonl", masker_now, returned).wait
        result = agent_process.run_agent(
            python, script, arguments, folder, steps, timeout, every, processes, plan, wait, launcher
        )
        left = left_by_run(tree, plan)
        masker = masker_now()
        number = max(processes, _ranks_in(folder)) if launcher else processes
        names = [f".{rank}" for rank in range(number)] if processes > 1 else [""]
        ranks = tuple(observations.read(folder / f"observations.jsonl{name}", left, masker) for name in names)
    result = replace(result, output=masker.mask(result.output))
    return ProbeRun(script, ranks[0], result, timeout, ranks if processes > 1 else (), masker)


def _ranks_in(folder: Path) -> int:
    """The number of ranks with observations in a folder, those of other nodes included."""
    ranks = (path.name.rpartition(".")[2] for path in folder.glob("observations.jsonl.*"))
    return max((int(rank) + 1 for rank in ranks if rank.isdecimal()), default=0)


def _cells(script: str, folder: Path) -> Sequence[str]:
    """Write the cells of a notebook into folder, and return the agent's option for them."""
    if not script.endswith(".ipynb"):
        return ()
    file, path = folder / "cells.json", str(Path(script).absolute())
    written = [
        {
            "path": path_of(path, cell.number),
            "text": cell.text,
            "skipped": [(each.row, each.text) for each in cell.skipped_lines],
        }
        for cell in cells(read_bytes(script))
    ]
    file.write_text(json.dumps(written), "utf-8")
    return "--cells", str(file)


@contextlib.contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Clean up after SIGTERM as after Ctrl-C, and exit with 143.

    CI systems send SIGTERM on cancel.
    """

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
