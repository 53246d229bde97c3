"""What the command `probe` does."""

from __future__ import annotations

import shutil
from pathlib import Path

from shapefix.cli.probe_options import Asked, contradiction, unfit
from shapefix.cli.terminal import echo_err
from shapefix.report.view import one_line
from shapefix.sources.text import Unreadable


def probe(asked: Asked) -> int:
    """Run a script for a training step, and report what happened; returns the exit code."""
    from shapefix.cli import probe_forecast, probe_output
    from shapefix.cli.exit_codes import FAILED, code_of
    from shapefix.rulebook.pages import names_and_severities
    from shapefix.runtime import ranks
    from shapefix.runtime.findings.collect import findings
    from shapefix.runtime.report.page.write import unwritable
    from shapefix.runtime.run import probe
    from shapefix.runtime.user_python import interpreter

    problem = unfit(asked)
    if problem is not None:
        echo_err(f"error: {one_line(asked.script)}: {problem}")
        return FAILED
    wrong = contradiction(asked)
    if wrong is not None:
        echo_err(f"error: {wrong}")
        return FAILED
    python = asked.python or interpreter(Path(asked.script))
    found = shutil.which(python)
    if found is None:
        echo_err(
            f"error: {one_line(python)}: there is no such interpreter; name the one to use with --python"
        )
        return FAILED
    problem = None if asked.report is None else unwritable(asked.report)
    if asked.report is not None and problem is not None:
        echo_err(f"error: --report {one_line(asked.report)}: {problem}")
        return FAILED
    try:
        if asked.repair:
            from shapefix.cli import probe_repair

            return probe_repair.repair(found, asked)
        if asked.vram is not None:
            return probe_forecast.report(found, asked, asked.vram)
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
        echo_err(f"error: {one_line(python)}: cannot be started: {error.strerror or error}")
        return FAILED
    except Unreadable as error:
        echo_err(f"error: {one_line(asked.script)}: {error.message}")
        return FAILED
    rules = names_and_severities()
    known = ranks.found(run, rules) if run.ranks else findings(run.observed, rules)
    return probe_output.report(run, known, asked, code_of(run, known))
