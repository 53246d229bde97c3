"""`probe --repair`: the repairs that runs have proved, their diff, and the exit code it ends with."""

from __future__ import annotations

import sys
from dataclasses import replace

from shapefix.cli import probe_output
from shapefix.cli.exit_codes import CLEAN, FAILED, FOUND, code_of
from shapefix.cli.output import write_diff
from shapefix.cli.probe_options import Asked
from shapefix.cli.terminal import echo_err
from shapefix.diagnostics import Diagnostic
from shapefix.report.view import one_line
from shapefix.rulebook.pages import names_and_severities
from shapefix.runtime.repair import text_report
from shapefix.runtime.repair.search import Outcome, search
from shapefix.runtime.repair.static_findings import Reader
from shapefix.runtime.repair.trials import Command, Runner
from shapefix.runtime.repair.writing import NotWritten, write_all
from shapefix.runtime.report.formatting import counted
from shapefix.runtime.run import terminated_as_interrupted
from shapefix.sources.text import Unreadable

MOST_RUNS = 24
"""So many times a script is run at most."""


def repair(python: str, asked: Asked) -> int:
    """Repair a copy of the script and its project, show the diff with its proof, and write it where asked.

    Raises ConfigurationError, and OSError where the interpreter cannot be started.
    """

    def told(what: str) -> None:
        if sys.stderr.isatty() and not asked.quiet:
            echo_err(f"running {asked.script}: {what}")

    device = () if asked.device == "auto" else ("--device", asked.device)
    options = (*device, *asked.options)
    command = Command(python, asked.script, asked.arguments, asked.steps, asked.timeout, options)
    reader = Reader("." if asked.module else asked.script)
    runner = Runner(command, names_and_severities(), MOST_RUNS, told)
    try:
        with terminated_as_interrupted():
            outcome = search(runner, reader)
    except Unreadable as error:
        echo_err(f"error: {one_line(asked.script)}: {one_line(error.message)}")
        return FAILED
    best = outcome.best.trial
    if not outcome.passed and not best.found.diagnostics:
        probe_output.report(best.run, best.found, asked, FAILED)
        echo_err("error: nothing to repair is known: the script could not be seen to work")
        return FAILED
    view = replace(probe_output.view_of(asked), sources=best.draft.read)
    changes = list(best.draft.changes())
    for old, new in changes:
        write_diff(view, old.path, old.text, new.text)
    if not asked.quiet:
        if changes:
            sys.stdout.write("\n")
        rows = text_report.lines(outcome, lambda path: one_line(view.relative(path)), view.width)
        sys.stdout.write(probe_output.painter(view)([*rows, []]))
    left = _left(outcome, reader)
    if left:
        from shapefix.report import full

        sys.stdout.writelines(full.render(left, (), view))
    if outcome.passed and asked.apply:
        try:
            with terminated_as_interrupted():
                write_all(changes)
        except NotWritten as error:
            echo_err(
                f"error: {one_line(view.relative(error.path))}: cannot be written: {one_line(str(error))}"
            )
            return FAILED
    if not asked.quiet:
        echo_err(f"{_conclusion(outcome, asked.apply)} {_bound(outcome, runner)}")
    if not outcome.passed:
        return code_of(best.run, best.found)
    return FOUND if left else CLEAN


def _left(outcome: Outcome, reader: Reader) -> tuple[Diagnostic, ...]:
    """The findings that the best run still has, with what can be done about them by hand."""
    best = outcome.best.trial
    if not best.found.diagnostics:
        return ()
    read = reader.findings(best.draft, best.files)
    return tuple(replace(found, fixes=text_report.by_hand(found, read)) for found in best.found.diagnostics)


def _conclusion(outcome: Outcome, apply: bool) -> str:
    """What is written, or would be."""
    repairs, files = len(outcome.best.kept), len(list(outcome.best.trial.draft.changes()))
    if not outcome.passed and repairs:
        return "The script comes farther with these repairs, but no run passed: nothing is written."
    if not outcome.passed:
        trains = outcome.best.trial.run.trained
        return f"No repair was found {'for what is found' if trains else 'that makes the script train'}."
    if not repairs and outcome.best.trial.found.diagnostics:
        return "The script trains, and no repair is known for what is found."
    if not repairs:
        return "The script trains: nothing to repair."
    what = f"{counted(repairs, 'finding')} in {counted(files, 'file')}"
    return f"Repaired {what}." if apply else f"Would repair {what} with --apply."


def _bound(outcome: Outcome, runner: Runner) -> str:
    """How many runs it took, and whether there was more to try."""
    took = f"{counted(runner.runs, 'run')}, {runner.seconds:.0f} s"
    return f"({took}; there was more to try, but no more runs are made)" if outcome.bounded else f"({took})"
