"""The format `github`: workflow commands, shown by GitHub Actions as annotations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shapefix.diagnostics import Diagnostic, Failure, Severity, cell_of
from shapefix.report.view import View, visible, with_cell, with_circumstances

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> Iterator[str]:
    """Render a command per finding and failure. Paths are absolute: a step may run in any folder."""
    for finding in findings:
        span = finding.span
        properties: dict[str, str | int] = {
            "title": f"shapefix ({finding.code})",
            "file": view.absolute(span.path),
            "line": span.row,
            "col": span.column,
            "endLine": span.end_row,
            "endColumn": span.end_column,
        }
        if span.row != span.end_row:  # GitHub takes columns only for a stretch of one line
            del properties["col"], properties["endColumn"]
        cell = cell_of(span.path)
        if cell is not None:  # the rows of a cell are not those of the notebook's file
            properties = {"title": properties["title"], "file": view.absolute(cell[0])}
        message = with_circumstances(finding, with_cell(span.path, span.row, finding.text), "\n")
        command = "notice" if finding.is_refuted else _COMMANDS[finding.severity]
        yield _command(command, properties, message)
    for failure in failures:
        places = {"line": failure.row, "col": failure.column}
        known = {name: number for name, number in places.items() if number is not None}
        properties = {"title": "shapefix", "file": view.absolute(failure.path), **known}
        cell = cell_of(failure.path)
        if cell is not None:
            properties = {"title": "shapefix", "file": view.absolute(cell[0])}
        yield _command("error", properties, with_cell(failure.path, failure.row, failure.message))


def _command(name: str, properties: dict[str, str | int], message: str) -> str:
    written = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name} {written}::{_data(message)}\n"


def _data(text: str) -> str:
    return visible(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
