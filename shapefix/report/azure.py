"""The format `azure`: logging commands, shown by Azure Pipelines as issues of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shapefix.diagnostics import Diagnostic, Failure, Severity, cell_of
from shapefix.report.view import View, visible, with_cell, with_circumstances


def render(findings: Sequence[Diagnostic], failures: Sequence[Failure], view: View) -> Iterator[str]:
    """Render a command per finding and failure. Azure knows errors and warnings only."""
    for finding in findings:
        is_error = finding.severity is Severity.ERROR and not finding.is_refuted
        message = with_circumstances(finding, finding.text, "; ")
        place = finding.span.path, finding.span.row, finding.span.column
        yield _command("error" if is_error else "warning", place, finding.code, message, view)
    for failure in failures:
        yield _command("error", (failure.path, failure.row, failure.column), "", failure.message, view)


def _command(
    kind: str, place: tuple[str, int | None, int | None], code: str, message: str, view: View
) -> str:
    path, row, column = place
    cell = cell_of(path)
    if cell is not None:  # the rows of a cell are not those of the notebook's file
        message = with_cell(path, row, message)
        path, row, column = cell[0], None, None
    properties = {
        "type": kind,
        "sourcepath": view.absolute(path),
        "linenumber": row,
        "columnnumber": column,
        "code": code or None,
    }
    written = "".join(
        f"{name}={_property(str(value))};" for name, value in properties.items() if value is not None
    )
    return f"##vso[task.logissue {written}]{_data(message)}\n"


def _data(text: str) -> str:
    return visible(text.replace("%", "%AZP25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(";", "%3B").replace("]", "%5D")
