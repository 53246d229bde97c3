"""Read the errors in the outputs of a notebook's cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shapefix.diagnosis.error_reports import ErrorReport
from shapefix.diagnosis.log_lines import clean
from shapefix.diagnosis.tracebacks import read_reports
from shapefix.light_dataclasses import dataclass
from shapefix.sources.notebook_outputs import RunCell, StoredError


@dataclass(frozen=True)
class StoredReport:
    """An error in the outputs of a cell."""

    cell: RunCell
    report: ErrorReport


def stored_reports(cells: Sequence[RunCell]) -> Iterator[StoredReport]:
    """Yield the errors in the outputs of cells, and the printed ones of programs."""
    for cell in cells:
        printed = list(read_reports(clean(line.encode("utf-8", "replace")) for line in cell.printed))
        if printed:
            yield StoredReport(cell, printed[-1])
        for error in cell.errors:
            # Jupyter stores an error without a name in the cells after a failed one.
            if error.name or error.message:
                yield StoredReport(cell, _report(error))


def _report(error: StoredError) -> ErrorReport:
    """Return a stored error with its frames; its type and message are stored beside the traceback."""
    rows = (row for line in error.lines for row in clean(line.encode("utf-8", "replace")).split("\n"))
    found = list(read_reports(rows))
    if not found:
        return ErrorReport(error.name, error.message.strip())
    last = found[-1]
    if last.name != error.name.rpartition(".")[2]:
        return replace(last, type=error.name, message=error.message.strip())
    return last
