"""`shapefix diagnose`: explain the error at the end of a log, name its cause, and repair it."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH109

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import BinaryIO

from shapefix.cli.exit_codes import CLEAN, FAILED, FOUND
from shapefix.cli.output import write
from shapefix.cli.terminal import InputUnreadable, echo_err, use_color, width
from shapefix.diagnosis import json_report, text_report
from shapefix.diagnosis.causes import Confidence
from shapefix.diagnosis.diagnose import Diagnosis, diagnose_log, diagnose_notebook
from shapefix.diagnosis.log_lines import log_lines
from shapefix.diagnosis.repaired_causes import patch, repaired_cause
from shapefix.diagnostics import Applicability, Diagnostic, Failure
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions
from shapefix.light_dataclasses import dataclass
from shapefix.repair import writes
from shapefix.report.formats import FINDING_FORMATS
from shapefix.report.view import View, one_line
from shapefix.sources.text import is_notebook, reason


@dataclass(frozen=True)
class DiagnoseRequest:
    """The parsed command line of diagnose; options has the settings of the check."""

    log: str
    apply: bool
    unsafe_fixes: bool
    output_format: str
    color: str
    options: CheckOptions


def diagnose(request: DiagnoseRequest) -> int:
    """Report the diagnosis of a log. Raises ConfigurationError and InputUnreadable."""
    folder = os.getcwd()
    try:
        with _opened(request.log) as stream:
            if is_notebook(request.log):
                found = diagnose_notebook(request.log, folder, request.options)
            else:
                found = diagnose_log(log_lines(stream), folder, request.options)
    except OSError as error:
        echo_err(f"error: {one_line(request.log)}: cannot be read: {reason(error)}")
        return FAILED
    return report(found, request)


def report(found: Diagnosis | None, request: DiagnoseRequest) -> int:
    """Write a diagnosis, and apply the fix of its cause if the command line says so."""
    view = _view(request, found.session if found is not None else None)
    if request.output_format == "json":
        write(json_report.render(found, view))
    elif request.output_format in FINDING_FORMATS:
        write(FINDING_FORMATS[request.output_format].render(*_as_findings(found), view))
        if found is None:
            echo_err("no error found in the input")
    elif found is None:
        echo_err("no error found in the input")
    else:
        write(text_report.render(found, view, patch(found, view), is_applied=_is_written(found, request)))
    if found is None:
        return FAILED
    if not found.causes or found.causes[0].confidence is Confidence.POSSIBLE:
        return FOUND
    return _apply(found, request, view) if request.apply else CLEAN


def _as_findings(found: Diagnosis | None) -> tuple[list[Diagnostic], list[Failure]]:
    """Return the causes as findings; without one, the error as a failure of its line."""
    if found is None:
        return [], []
    if found.causes:
        return [replace(each.finding, evidence=each.evidence) for each in found.causes], []
    message = f"{found.error.type}: {found.error.message}" if found.error.message else found.error.type
    if found.explanation is not None:
        message += f"; {found.explanation.what}"
    frames = [frame for frame in found.frames if not frame.is_missing]
    if not frames:
        return [], [Failure("<log>", message)]
    return [], [Failure(frames[-1].span.path, message, frames[-1].span.row)]


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        if sys.stdin.closed or not sys.stdin.readable():
            raise InputUnreadable("it is closed")
        yield sys.stdin.buffer
        return
    with open(path, "rb") as stream:  # noqa: PTH123
        yield stream


def _view(request: DiagnoseRequest, session: CheckSession | None) -> View:
    view = View(
        os.getcwd(),
        width(sys.stdout),
        use_color(request.color, sys.stdout),
        request.unsafe_fixes,
        quiet=True,
        verbose=request.options.verbose,
    )
    return view if session is None else replace(view, sources=session.source)


def _is_written(found: Diagnosis, request: DiagnoseRequest) -> bool:
    """Whether the fix of the first cause needs no other option."""
    fix = found.causes[0].finding.fix if found.causes else None
    is_allowed = fix is not None and (fix.applicability is Applicability.SAFE or request.unsafe_fixes)
    return request.apply and is_allowed


def _apply(found: Diagnosis, request: DiagnoseRequest, view: View) -> int:
    """Write the fix of the first cause."""
    finding = found.causes[0].finding
    fix = finding.fix
    place = f"{one_line(view.relative(finding.span.path))}:{finding.span.row}"
    if fix is None or fix.applicability is Applicability.DISPLAY:
        echo_err(f"not repaired: {place}: {finding.code}: there is no automatic fix")
        return CLEAN
    if fix.applicability is Applicability.UNSAFE and not request.unsafe_fixes:
        echo_err(f"not repaired: {place}: {finding.code}: the fix is unsafe; add --unsafe-fixes")
        return CLEAN
    repaired = repaired_cause(found, writes.write)
    if isinstance(repaired, Failure):
        echo_err(f"error: {place}: {repaired.message}")
        return FAILED
    if isinstance(repaired, str):
        echo_err(f"not repaired: {place}: {finding.code}: {one_line(repaired)}")
        return CLEAN
    echo_err(f"{place}: repaired {finding.code}")
    return CLEAN
