"""The magics of the extension: `%%check`, `%%shapes` and `%shapefix`."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH120

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from shapefix.diagnosis import text_report
from shapefix.diagnosis.diagnose import diagnose_exception
from shapefix.diagnosis.notebook_cells import blank_rows
from shapefix.diagnosis.repaired_causes import patch, repaired_cause
from shapefix.diagnostics import Diagnostic, cell_of, path_of
from shapefix.engine.repairs import FileRepair
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings
from shapefix.ipython.live_errors import live_error
from shapefix.ipython.session_cells import SessionCells, session_path
from shapefix.ipython.session_view import SessionView, is_notebook_front_end, show, width_of
from shapefix.report.full import render as render_findings
from shapefix.report.view import one_line, wants_color
from shapefix.sources.configuration import ConfigurationError
from shapefix.sources.text import in_memory

_HELP = """\
%%check                 check the cell in the session, then run it
%%check --no-run        check it only
%%shapes [--no-run]     show the sizes in the cell's functions and modules, then run it
%shapefix check         check all cells of the session
%shapefix why           explain the last exception, with the values in its frames
%shapefix why --apply   put the repaired cell into a new one below; run it there
%shapefix help          this text
--verbose               show every step of the evidence (check, why)

The manual: `!shapefix help notebooks`.
"""
_CALL = "get_ipython().run_line_magic('shapefix', {!r})"
_APPLY = "--apply"
_BEFORE = "before-cell"
"""The command of `%shapefix` for the first row of a cell with `%%check` or `%%shapes`."""
_OPTIONS = CheckOptions(use_cache=False, jobs=1)


class UnusableLine(Exception):
    """The options of a magic are not known; the message is for the user."""


class Magics:
    """The magics of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.cells = SessionCells(shell)

    def line(self, line: str) -> None:
        """Run `%shapefix`."""
        with_one_line(lambda: self._line(line))

    def check_cell(self, line: str, cell: str) -> None:
        """Run `%%check` as a cell magic, for the cells left by transform."""
        self._cell("check", line, cell)

    def shapes_cell(self, line: str, cell: str) -> None:
        """Run `%%shapes` as a cell magic, for the cells left by transform."""
        self._cell("shapes", line, cell)

    def transform(self, lines: list[str]) -> list[str]:
        """Replace the first row of a cell with `%%check` or `%%shapes` by a call: the cell runs as usual.

        A cell that is not to run, and one with another cell magic below, are left to the magic.
        """
        words = lines[0].split() if lines else []
        if not words or words[0] not in ("%%check", "%%shapes") or "--no-run" in words:
            return lines
        if any(row.startswith("%%") for row in lines[1:] if row.strip()):
            return lines
        command = " ".join((_BEFORE, words[0].removeprefix("%%"), *words[1:]))
        return [f"{_CALL.format(command)}\n", *lines[1:]]

    def _line(self, line: str) -> None:
        words = shlex.split(line)
        command, *options = words or ["help"]
        if command == _BEFORE and options:
            command, *options = options
            self._examine(command, options, None)
        elif command == "check":
            self._check(None, None, _is_verbose(options))
        elif command == "why":
            rest = [each for each in options if each != _APPLY]
            self._why(_is_verbose(rest), _APPLY in options)
        elif command in ("help", "--help", "-h"):
            print(_HELP, end="")
        else:
            raise UnusableLine(f"unknown command {command!r}; `%shapefix help` lists them")

    def _cell(self, command: str, line: str, cell: str) -> None:
        options: list[str] = []

        def examine() -> None:
            options[:] = shlex.split(line)
            self._examine(command, [each for each in options if each != "--no-run"], cell)

        with_one_line(examine)
        if "--no-run" not in line.split():
            self._shell.run_cell(cell)

    def _examine(self, command: str, options: Sequence[str], cell: str | None) -> None:
        """Check the cell in execution, or list its sizes; cell is its text without the magic."""
        number = self.cells.last
        text = self.cells.typed[number] if cell is None else f"\n{cell}"
        if cell is None:
            # Its row stays: the rows are those of the cell.
            rows = text.split("\n")
            rows[blank_rows(text)] = ""
            text = "\n".join(rows)
        if command == "check":
            self._check(number, text, _is_verbose(options))
        else:
            _is_verbose(options)
            self._shapes(number, text)

    def _check(self, number: int | None, text: str | None, verbose: bool) -> None:
        """Report the findings of a cell, or of all cells without a number."""
        path = session_path()
        last = self.cells.last if number is None else number
        with in_memory(path, self.cells.notebook(last, text)):
            session = CheckSession([path], Settings(_OPTIONS), run_importers=False).run()
            found = [replace(each, unused="") for each in session.findings()]
            failures = session.failures()
            if number is not None:
                own = path_of(path, number)
                found = [each for each in found if own in _paths(each)]
                failures = tuple(each for each in failures if each.path == own)
            view = self._view(path, session, verbose)
            if not found and not failures:
                where = "the cells of this session" if number is None else f"In [{number}]"
                show(self._shell, f"shapefix: nothing found in {where}{self._cut(number)}\n")
                return
            show(self._shell, "".join(render_findings(found, failures, view)))

    def _cut(self, number: int | None) -> str:
        """Name the cells checked only up to their errors, if all cells were checked."""
        failed = [each for each in self.cells.failed if each != self.cells.last] if number is None else []
        if not failed:
            return ""
        named = ", ".join(f"In [{each}]" for each in failed[-3:])
        return f", up to the error in {named}; `%shapefix why` explains the last one"

    def _shapes(self, number: int, text: str) -> None:
        from shapefix.ipython.cell_shapes import cell_listings
        from shapefix.sizes.render import render

        path = session_path()
        listings = cell_listings(path, self.cells, number, text)
        if not listings:
            show(self._shell, "shapefix: this cell has no statement or function with tensors\n")
            return
        show(self._shell, "".join(render(listings, self._view(path, None, False))))

    def _why(self, verbose: bool, is_applied: bool) -> None:
        """Explain the last exception; if is_applied, put the repaired cell below."""
        error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if not isinstance(error, BaseException):
            raise UnusableLine("there was no exception in this session")
        path = session_path()
        live = live_error(error, self.cells)
        numbers = [
            cell[1]
            for report in live.report.chain()
            for frame in report.frames
            if (cell := cell_of(frame.path)) is not None
        ]
        options = replace(_OPTIONS, verbose=verbose)
        with in_memory(path, self.cells.notebook(max(numbers, default=self.cells.last))):
            found = diagnose_exception(live.report, live.facts, path, options)
            view = self._view(path, found.session, verbose)
            report = text_report.render(found, view, patch(found, view), is_applied=is_applied)
            show(self._shell, "".join(report))
            repaired = repaired_cause(found) if is_applied else None
        if is_applied:
            self._put_below(repaired.changes if isinstance(repaired, FileRepair) else ())

    def _put_below(self, changes: Sequence[tuple[str, str, str]]) -> None:
        """Offer the repaired text of a cell as the next input."""
        typed = self.cells.typed
        repaired = [
            (cell[1], new.rstrip("\n"))
            for path, old, new in changes
            if (cell := cell_of(path)) is not None
            # Of a failed cell, the session may have a part only.
            and typed[cell[1] : cell[1] + 1] == [old.rstrip("\n")]
        ]
        if not repaired or len(repaired) != len(changes):
            raise UnusableLine("there is no repair of a single cell; nothing was put below")
        if len(repaired) > 1:
            numbers = ", ".join(f"In [{number}]" for number, _ in repaired)
            raise UnusableLine(f"the repair changes {numbers}; nothing was put below")
        number, text = repaired[0]
        self._shell.set_next_input(text)
        print(f"shapefix: In [{number}] is below with the repair; run it, then the cells after it")

    def _view(self, path: str, session: CheckSession | None, verbose: bool) -> SessionView:
        color = is_notebook_front_end(self._shell) or wants_color(sys.stdout)
        view = SessionView(
            os.path.dirname(path), width_of(self._shell), color, quiet=True, verbose=verbose, notebook=path
        )
        return view if session is None else replace(view, sources=partial(self._source, session))

    def _source(self, session: CheckSession, path: str) -> str | None:
        """Return the checked text of a file, that of a cell as typed."""
        cell, typed = cell_of(path), self.cells.typed
        if cell is not None and cell[0] == session_path() and cell[1] < len(typed):
            return typed[cell[1]]
        return session.source(path)


def _paths(finding: Diagnostic) -> Iterator[str]:
    yield finding.span.path
    yield from (step.span.path for step in finding.evidence)


def _is_verbose(options: Sequence[str]) -> bool:
    """Whether the only option is --verbose. Raises UnusableLine for another one."""
    unknown = [each for each in options if each not in ("--verbose", "-v")]
    if unknown:
        raise UnusableLine(f"unknown option {unknown[0]!r}; `%shapefix help` lists them")
    return bool(options)


def with_one_line(run: Callable[[], None]) -> None:
    """Run a part of shapefix; its own errors are one line, and never one of the user's cell."""
    try:
        run()
    except UnusableLine as error:
        _complain(str(error))
    except ConfigurationError as error:
        _complain(str(error))
    except Exception as error:
        _complain(f"internal error: {type(error).__name__}: {error}")


def _complain(message: str) -> None:
    sys.stderr.write(f"shapefix: {one_line(message)}\n")
