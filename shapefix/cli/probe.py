"""The command `probe`."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from shapefix.cli.probe_options import (
    ProbeOptions,
    validate_options,
    validate_script,
)
from shapefix.cli.terminal import echo_err
from shapefix.report.view import one_line
from shapefix.sources.text import Unreadable


def probe(options: ProbeOptions) -> int:
    """Run a script for a training step, and report the result; returns the exit code."""
    from shapefix.cli import probe_forecast, probe_output
    from shapefix.cli.exit_codes import FAILED, code_of
    from shapefix.runtime.confirmation.static_verdicts import with_verdicts
    from shapefix.runtime.findings import nan_blame
    from shapefix.runtime.findings.collect import collect_findings
    from shapefix.runtime.findings.environment import CPU_FOR_GPU, FAKE, missing_gpu, simulation_note
    from shapefix.runtime.findings.missing_launcher import OPTION as LAUNCHED
    from shapefix.runtime.findings.missing_launcher import launcher_note, missing_launcher
    from shapefix.runtime.findings.nan_blame import with_nan_origins
    from shapefix.runtime.findings.write_blame import OPTION, with_writes
    from shapefix.runtime.protocol import SourceLine
    from shapefix.runtime.ranks import rank_findings
    from shapefix.runtime.repair.offered import with_static_fixes
    from shapefix.runtime.report.page.write import report_problem
    from shapefix.runtime.run import ProbeRun, probe_script
    from shapefix.runtime.user_python import find_interpreter

    Path.cwd()  # a deleted folder is a better explanation than a missing script
    problem = validate_script(options)
    if problem is not None:
        echo_err(f"error: {one_line(options.script)}: {problem}")
        return FAILED
    problem = validate_options(options)
    if problem is not None:
        echo_err(f"error: {problem}")
        return FAILED
    python = options.python or find_interpreter(Path(options.script))
    executable = shutil.which(python)
    if executable is None:
        echo_err(f"error: {one_line(python)}: no such interpreter; choose one with --python")
        return FAILED
    problem = None if options.report is None else report_problem(options.report)
    if options.report is not None and problem is not None:
        echo_err(f"error: --report {one_line(options.report)}: {problem}")
        return FAILED
    baseline = None
    if options.baseline is not None:
        from shapefix.runtime.report.run_comparison import UnusableRunDocument, read_summary

        try:
            baseline = read_summary(options.baseline)
        except UnusableRunDocument as error:
            echo_err(f"error: --baseline {one_line(options.baseline)}: {error}")
            return FAILED
    try:
        if options.repair:
            from shapefix.cli import probe_repair

            return probe_repair.repair(executable, options)
        if options.vram is not None:
            return probe_forecast.report(executable, options, options.vram)
        device: tuple[str, ...] = () if options.device == "auto" else ("--device", options.device)

        printer = probe_output.ForwardPrinter(options)

        def run_script(*more: str) -> ProbeRun:
            return probe_script(
                executable,
                options.script,
                options.arguments,
                options.wanted_steps,
                options.timeout,
                (*device, *options.agent_options, *more),
                options.processes,
                printer if printer.applies else None,
                options.launcher,
            )

        run = run_script()
        launcher = missing_launcher(run.observed) if options.processes == 1 else None
        if launcher is not None:
            device = (*device, LAUNCHED)
            run = run_script()
        missing = missing_gpu(run.observed) if options.may_simulate else None
        replacement: str | None = None
        if missing is not None:
            for name in (CPU_FOR_GPU, FAKE):
                another = run_script("--device", name)
                if another.has_device and missing_gpu(another.observed) is None:
                    run, device, replacement = another, (*device, "--device", name), name
                    break
    except OSError as error:
        echo_err(f"error: {one_line(python)}: cannot be started: {error.strerror or error}")
        return FAILED
    except Unreadable as error:
        echo_err(f"error: {one_line(options.script)}: {error.message}")
        return FAILED
    found = (
        rank_findings(run)
        if run.ranks
        else with_nan_origins(
            with_writes(collect_findings(run.observed), run.observed, lambda: run_script(OPTION).observed),
            lambda: run_script(nan_blame.OPTION).observed,
        )
    )
    if missing is not None and replacement is not None:
        found = replace(found, notes=(simulation_note(missing, replacement), *found.notes))
    if launcher is not None:
        found = replace(found, notes=(launcher_note(launcher), *found.notes))
    executed = dict.fromkeys(line["file"] for line in run.observed.of(SourceLine))
    found = with_static_fixes(found, "." if options.module else options.script, executed)
    # Static findings count only where they explain an exception of the run.
    code = code_of(run, found)
    found = with_verdicts(run, found, probe_output.view_of(options))
    return probe_output.report(run, found, options, code, baseline=baseline, printed=printer.rows)
