"""What the command `probe` does."""

from __future__ import annotations

import shutil
from pathlib import Path

from shapefix.probes.asked import Asked, contradiction, unfit
from shapefix.report.view import one_line
from shapefix.sources.text import Unreadable
from shapefix.terminal import say


def probe(asked: Asked) -> int:
    """Run a script for a training step, and report what happened; returns the exit code."""
    from shapefix.probe import ranks
    from shapefix.probe.findings import findings
    from shapefix.probe.interpreter import interpreter
    from shapefix.probe.run import probe
    from shapefix.probes import forecasts, shown
    from shapefix.probes.codes import FAILED, code_of
    from shapefix.probes.reports import unwritable

    problem = unfit(asked)
    if problem is not None:
        say(f"error: {one_line(asked.script)}: {problem}")
        return FAILED
    wrong = contradiction(asked)
    if wrong is not None:
        say(f"error: {wrong}")
        return FAILED
    python = asked.python or interpreter(Path(asked.script))
    found = shutil.which(python)
    if found is None:
        say(f"error: {one_line(python)}: there is no such interpreter; name the one to use with --python")
        return FAILED
    problem = None if asked.report is None else unwritable(asked.report)
    if asked.report is not None and problem is not None:
        say(f"error: --report {one_line(asked.report)}: {problem}")
        return FAILED
    try:
        if asked.repair:
            from shapefix.probes import repairs

            return repairs.repair(found, asked)
        if asked.vram is not None:
            return forecasts.report(found, asked, asked.vram)
        device = () if asked.device == "auto" else ("--device", asked.device)
        run = probe(
            found,
            asked.script,
            asked.arguments,
            asked.steps,
            asked.timeout,
            (*device, *asked.options),
            asked.processes,
        )
    except OSError as error:
        say(f"error: {one_line(python)}: cannot be started: {error.strerror or error}")
        return FAILED
    except Unreadable as error:
        say(f"error: {one_line(asked.script)}: {error.message}")
        return FAILED
    known = ranks.found(run, shown.rules()) if run.ranks else findings(run.observed, shown.rules())
    return shown.report(run, known, asked, code_of(run, known))
