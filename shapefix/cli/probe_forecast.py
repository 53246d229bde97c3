"""`probe --vram`: the forecast of a step's memory, and the exit code it ends with."""

from __future__ import annotations

import sys

from shapefix.cli import probe_output
from shapefix.cli.exit_codes import CLEAN, FAILED, FOUND
from shapefix.cli.probe_options import Asked
from shapefix.cli.terminal import echo_err
from shapefix.rulebook.pages import names_and_severities
from shapefix.runtime.findings.collect import findings
from shapefix.runtime.forecast.runs import Script, forecast


def report(python: str, asked: Asked, vram: int) -> int:
    """Forecast the memory of a step on a GPU of so many bytes, and print it. Raises OSError."""

    def told(what: str) -> None:
        if sys.stderr.isatty() and not asked.quiet:
            echo_err(f"running {asked.script}: {what}")

    script = Script(python, asked.script, asked.arguments, asked.timeout, asked.options)
    run, foretold = forecast(script, vram, told)
    known = findings(run.observed, names_and_severities())
    if foretold is None:
        code = FOUND if known.diagnostics else FAILED
        code = probe_output.report(run, known, asked, code)
        if run.trained:
            echo_err(
                "error: no forecast: the script trains, but keeps nothing on a GPU; does it ask for `cuda`?"
            )
        else:
            echo_err("error: no forecast: the script came to no training step")
        return code
    code = FOUND if known.diagnostics or not foretold.fits else CLEAN
    return probe_output.report(run, known, asked, code, foretold)
