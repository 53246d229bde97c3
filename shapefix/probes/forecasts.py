"""`probe --vram`: the forecast of a step's memory, and the exit code it ends with."""

from __future__ import annotations

import sys

from shapefix.probe.findings import findings
from shapefix.probe.forecasting import Script, forecast
from shapefix.probes import shown
from shapefix.probes.asked import Asked
from shapefix.probes.codes import CLEAN, FAILED, FOUND
from shapefix.terminal import say


def report(python: str, asked: Asked, vram: int) -> int:
    """Forecast the memory of a step on a GPU of so many bytes, and print it. Raises OSError."""

    def told(what: str) -> None:
        if sys.stderr.isatty() and not asked.quiet:
            say(f"running {asked.script}: {what}")

    script = Script(python, asked.script, asked.arguments, asked.timeout, asked.options)
    run, foretold = forecast(script, vram, told)
    known = findings(run.observed, shown.rules())
    if foretold is None:
        code = FOUND if known.diagnostics else FAILED
        code = shown.report(run, known, asked, code)
        if run.trained:
            say("error: no forecast: the script trains, but keeps nothing on a GPU; does it ask for `cuda`?")
        else:
            say("error: no forecast: the script came to no training step")
        return code
    code = FOUND if known.diagnostics or not foretold.fits else CLEAN
    return shown.report(run, known, asked, code, foretold)
