"""`probe --vram`: forecast the memory of a training step."""

from __future__ import annotations

import shlex
import sys

from shapefix.cli import probe_output
from shapefix.cli.exit_codes import CLEAN, FAILED, FOUND
from shapefix.cli.output import write_diff
from shapefix.cli.probe_options import ProbeOptions
from shapefix.cli.terminal import echo_err
from shapefix.report.view import one_line
from shapefix.runtime.findings.collect import collect_findings
from shapefix.runtime.forecast.changes import ChangeSearch, prove_change
from shapefix.runtime.forecast.forecast_runs import ForecastScript, forecast_memory
from shapefix.runtime.forecast.prediction import MemoryForecast
from shapefix.runtime.repair.writing import FilesNotWritten, write_all
from shapefix.runtime.report.formatting import byte_size
from shapefix.runtime.run import sigterm_as_interrupt


def report(python: str, options: ProbeOptions, vram: int) -> int:
    """Forecast the memory of a step on a GPU with vram bytes, and print it. Raises OSError.

    If the step does not fit, a change that makes it fit is shown as a diff, and written with --apply.
    """

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
    code = probe_output.report(run, found, options, code, forecast)
    if forecast.fits or options.output_format != "full" or code == FAILED:
        if options.apply and forecast.fits:
            echo_err("The step fits: nothing to change.")
        return code
    if options.quiet and not options.apply:
        return code
    search = prove_change(script, forecast, run.observed, progress)
    return _report_change(search, forecast, options, code, bool(found.diagnostics))


def _report_change(
    search: ChangeSearch, forecast: MemoryForecast, options: ProbeOptions, code: int, has_findings: bool
) -> int:
    """Print the proved change as a diff, and write it with --apply."""
    proved = search.proved
    if proved is None:
        if search.rejected and not options.quiet:
            tried = ", ".join(each.text for each, _ in search.rejected)
            echo_err(f"No change of the files makes the step fit; tried: {one_line(tried)}.")
        elif options.apply:
            echo_err("No change is known that could be made in the files.")
        return code
    view = probe_output.view_of(options)
    changes = list(proved.sources.changes())
    for old, new in changes:
        write_diff(view, old.path, old.text, new.text)
    proof = (
        f"{proved.proposed.text}: {byte_size(proved.peak.live)} live, {byte_size(proved.peak.reserved)} of "
        f"{byte_size(forecast.budget)} reserved, by a forecast with the change"
    )
    sys.stdout.write(f"\nmakes it fit: {one_line(proof)}.\n")
    if proved.proposed.arguments is not None:
        command = shlex.join([options.script, *proved.proposed.arguments])
        echo_err(f"Run it with these arguments: {one_line(command)}")
        return code
    if not options.apply:
        if not options.quiet:
            echo_err("--apply writes this change.")
        return code
    try:
        with sigterm_as_interrupt():
            write_all(changes)
    except FilesNotWritten as error:
        path = one_line(view.relative(error.path))
        echo_err(f"error: {path}: cannot be written: {one_line(str(error))}")
        return FAILED
    if not options.quiet:
        echo_err(f"Wrote the change to {', '.join(one_line(view.relative(old.path)) for old, _ in changes)}.")
    return FOUND if has_findings else CLEAN
