"""`shapefix diagnose`: explain the error at the end of a log, name its cause, and repair it."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH109

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import BinaryIO

from shapefix.cli.exit_codes import CLEAN, FAILED, FOUND
from shapefix.cli.output import write
from shapefix.cli.terminal import InputUnreadable, echo_err, use_color, width
from shapefix.diagnosis import json_report, text_report
from shapefix.diagnosis.diagnose import Diagnosis, diagnose_log
from shapefix.diagnosis.log_lines import log_lines
from shapefix.diagnostics import Applicability, Diagnostic, Fix
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions
from shapefix.repair import edits, writes
from shapefix.repair.difference import unified
from shapefix.report.view import View, one_line
from shapefix.sources.text import SourceText, Unreadable, read_source, reason


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
    elif found is None:
        echo_err("no error found in the input")
    else:
        write(text_report.render(found, view, _patch(found, view)))
    if found is None:
        return FAILED
    if not found.causes:
        return FOUND
    return _apply(found.causes[0].finding, request, view) if request.apply else CLEAN


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


def _patch(found: Diagnosis, view: View) -> Sequence[str]:
    """Return the diff of the first cause's fix."""
    if not found.causes:
        return ()
    finding = found.causes[0].finding
    repaired = _repaired(finding)
    if repaired is None:
        return ()
    old, new = repaired
    return list(unified(view.relative(finding.span.path), old.text, new.text))


def _repaired(finding: Diagnostic) -> tuple[SourceText, SourceText] | None:
    """Return the file of a finding before and after its fix; None without an applicable one."""
    fix = finding.fix
    if fix is None or not _is_applicable(fix):
        return None
    try:
        old = read_source(finding.span.path)
        text, applied, _ = edits.apply(old.text, [fix])
        ast.parse(text)
    except (Unreadable, edits.InvalidEdit, SyntaxError, ValueError):
        return None
    return (old, replace(old, text=text)) if applied else None


def _is_applicable(fix: Fix) -> bool:
    return fix.applicability is not Applicability.DISPLAY and bool(fix.edits)


def _apply(finding: Diagnostic, request: DiagnoseRequest, view: View) -> int:
    """Write the fix of a finding."""
    place = f"{one_line(view.relative(finding.span.path))}:{finding.span.row}"
    repaired = _repaired(finding)
    if repaired is None:
        echo_err(f"not repaired: {place}: {finding.code}: there is no automatic fix")
        return CLEAN
    fix = finding.fix
    if fix is not None and fix.applicability is Applicability.UNSAFE and not request.unsafe_fixes:
        echo_err(f"not repaired: {place}: {finding.code}: the fix is unsafe; add --unsafe-fixes")
        return CLEAN
    old, new = repaired
    try:
        writes.write(finding.span.path, new.encode(), old.encode())
    except writes.LeftAlone as error:
        echo_err(f"error: {place}: cannot be repaired: {error}")
        return FAILED
    except OSError as error:
        echo_err(f"error: {place}: cannot be written: {reason(error)}")
        return FAILED
    echo_err(f"{place}: repaired {finding.code}")
    return CLEAN
