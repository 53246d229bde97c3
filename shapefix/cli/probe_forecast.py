"""`probe --vram`: forecast the memory of a training step."""

from __future__ import annotations

import sys

from shapefix.cli import probe_output
from shapefix.cli.exit_codes import CLEAN, FAILED, FOUND
from shapefix.cli.probe_options import ProbeOptions
from shapefix.cli.terminal import echo_err
from shapefix.runtime.findings.collect import collect_findings
from shapefix.runtime.forecast.forecast_runs import ForecastScript, forecast_memory


def report(python: str, options: ProbeOptions, vram: int) -> int:
    """MemoryForecast the memory of a step on a GPU with vram bytes, and print it. Raises OSError."""

    def progress(what: str) -> None:
        if sys.stderr.isatty() and not options.quiet:
            echo_err(f"running {options.script}: {what}")

    script = ForecastScript(python, options.script, options.arguments, options.timeout, options.agent_options)
    run, forecast = forecast_memory(script, vram, progress)
    found = collect_findings(run.observed)
    if forecast is None:
        code = FOUND if found.diagnostics else FAILED
        code = probe_output.report(run, found, options, code)
        if run.trained:
            echo_err(
                "error: no forecast: the script trains, but not on a GPU; does it move its model to `cuda`?"
            )
        else:
            echo_err("error: no forecast: the script made no training step")
        return code
    code = FOUND if found.diagnostics or not forecast.fits else CLEAN
    return probe_output.report(run, found, options, code, forecast)
