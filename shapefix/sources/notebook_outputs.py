"""Read the traces of a notebook's last run: execution counts, errors and printed lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shapefix.light_dataclasses import dataclass
from shapefix.sources.notebooks import code_cells, execution_count, python_cell, typed_text


@dataclass(frozen=True)
class StoredError:
    """An exception in the outputs of a cell: its type, its message, and the lines of the traceback."""

    name: str
    message: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class RunCell:
    """A Python cell and its last run.

    number is that among all cells, text the source as typed, code the same as Python. count is the
    execution count, None for a cell without a run. printed are the lines of its text output.
    """

    number: int
    count: int | None
    text: str
    code: str
    errors: tuple[StoredError, ...] = ()
    printed: tuple[str, ...] = ()


def run_cells(data: bytes) -> tuple[RunCell, ...]:
    """Parse the Python cells of a notebook with their outputs. Raises Unreadable."""
    return tuple(_run_cell(number, cell) for number, cell in code_cells(data))


def _run_cell(number: int, cell: dict[str, Any]) -> RunCell:
    outputs = cell.get("outputs")
    found = [each for each in outputs if isinstance(each, dict)] if isinstance(outputs, list) else []
    text = typed_text(cell)
    return RunCell(
        number,
        execution_count(cell),
        text,
        python_cell(number, text).text,
        tuple(_errors(found)),
        tuple(line for each in found for line in _printed(each)),
    )


def _errors(outputs: list[dict[str, Any]]) -> Iterator[StoredError]:
    for output in outputs:
        if output.get("output_type") in ("error", "pyerr"):
            name, message = output.get("ename"), output.get("evalue")
            rows = _lines(output.get("traceback"))
            yield StoredError(str(name or ""), str(message or ""), rows)


def _printed(output: dict[str, Any]) -> tuple[str, ...]:
    """Return the lines of a stream, such as the output of `!python train.py`."""
    if output.get("output_type") != "stream":
        return ()
    text = output.get("text")
    parts = text if isinstance(text, list) else [text]
    return tuple("".join(part for part in parts if isinstance(part, str)).split("\n"))


def _lines(parts: object) -> tuple[str, ...]:
    if not isinstance(parts, list):
        return ()
    return tuple(line for part in parts if isinstance(part, str) for line in part.split("\n"))
