"""`probe --repair`: show or write the repairs proved by runs."""

from __future__ import annotations

import sys
from dataclasses import replace

from shapefix.cli import probe_output
from shapefix.cli.exit_codes import CLEAN, FAILED, FOUND, code_of
from shapefix.cli.output import write_diff
from shapefix.cli.probe_options import ProbeOptions
from shapefix.cli.terminal import echo_err
from shapefix.diagnostics import Diagnostic
from shapefix.report.view import one_line
from shapefix.runtime.findings.environment import CPU_FOR_GPU, FAKE, missing_gpu
from shapefix.runtime.repair.search import SearchResult, search
from shapefix.runtime.repair.static_findings import StaticFindings
from shapefix.runtime.repair.text_report import by_hand, repair_lines
from shapefix.runtime.repair.trials import ProbeCommand, TrialRunner
from shapefix.runtime.repair.writing import FilesNotWritten, write_all
from shapefix.runtime.report.formatting import counted
from shapefix.runtime.run import sigterm_as_interrupt
from shapefix.sources.text import Unreadable

MOST_RUNS = 24
"""The limit of runs of a script."""


def repair(python: str, options: ProbeOptions) -> int:
    """Repair a copy of the script and its project, show the diff with its proof, and write it with --apply.

    Raises ConfigurationError, and OSError if the interpreter cannot be started.
    """

    def progress(what: str) -> None:
        if sys.stderr.isatty() and not options.quiet:
            echo_err(f"running {options.script}: {what}")

    reader = StaticFindings("." if options.module else options.script)
    try:
        with sigterm_as_interrupt():
            for device in (options.device, CPU_FOR_GPU, FAKE):
                runner = TrialRunner(_command(python, options, device), MOST_RUNS, progress)
                result = search(runner, reader)
                if not options.may_simulate or missing_gpu(result.first.run.observed) is None:
                    break
    except Unreadable as error:
        echo_err(f"error: {one_line(options.script)}: {one_line(error.message)}")
        return FAILED
    best = result.best.trial
    if not result.trains and not best.found.diagnostics:
        probe_output.report(best.run, best.found, options, FAILED)
        echo_err("error: cannot repair: the run shows neither a training step nor an error to repair")
        return FAILED
    view = replace(probe_output.view_of(options), sources=best.sources.read)
    changes = list(best.sources.changes())
    for old, new in changes:
        write_diff(view, old.path, old.text, new.text)
    if not options.quiet:
        if changes:
            sys.stdout.write("\n")
        rows = repair_lines(result, lambda path: one_line(view.relative(path)), view.width)
        sys.stdout.write(probe_output.painter(view)([*rows, []]))
    left = _left(result, reader)
    if left:
        from shapefix.report import full

        sys.stdout.writelines(full.render(left, (), view))
    if result.trains and options.apply:
        try:
            with sigterm_as_interrupt():
                write_all(list(best.sources.file_changes()))
        except FilesNotWritten as error:
            echo_err(
                f"error: {one_line(view.relative(error.path))}: cannot be written: {one_line(str(error))}"
            )
            return FAILED
    if not options.quiet:
        echo_err(f"{_conclusion(result, options.apply)} {_runs(result, runner)}")
    if not result.trains:
        return code_of(best.run, best.found)
    return FOUND if left else CLEAN


def _command(python: str, options: ProbeOptions, device: str) -> ProbeCommand:
    """The command line for the runs on a device."""
    more = (*(() if device == "auto" else ("--device", device)), *options.agent_options)
    return ProbeCommand(
        python, options.script, options.arguments, options.steps, options.timeout, more, options.processes
    )


def _left(result: SearchResult, reader: StaticFindings) -> tuple[Diagnostic, ...]:
    """The findings of the best run, with manual fixes."""
    best = result.best.trial
    if not best.found.diagnostics:
        return ()
    read = reader.findings(best.sources, best.files)
    return tuple(replace(found, fixes=by_hand(found, read)) for found in best.found.diagnostics)


def _conclusion(result: SearchResult, apply: bool) -> str:
    """The last line of the output."""
    repairs, files = len(result.best.accepted), len(list(result.best.trial.sources.file_changes()))
    if not result.trains and repairs:
        return "The script gets further with these repairs, but does not train: nothing is written."
    if not result.trains:
        trains = result.best.trial.run.trained
        return f"Found no repair {'for these findings' if trains else 'that makes the script train'}."
    if not repairs and result.best.trial.found.diagnostics:
        return "The script trains; no repair is known for these findings."
    if not repairs:
        return "The script trains: nothing to repair."
    what = f"{counted(repairs, 'finding')} in {counted(files, 'file')}"
    return f"Repaired {what}." if apply else f"Would repair {what} with --apply."


def _runs(result: SearchResult, runner: TrialRunner) -> str:
    """The number and time of runs, and whether the limit was reached."""
    took = f"{counted(runner.runs, 'run')}, {runner.seconds:.0f} s"
    return f"({took}; stopped at the limit of runs)" if result.limited else f"({took})"
