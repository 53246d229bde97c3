"""Read the code cells of Jupyter notebooks as Python, without IPython's own syntax."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from shapefix.light_dataclasses import dataclass
from shapefix.sources.text import Unreadable, rows_of


class OtherLanguage(Unreadable):
    """The notebook is not in Python."""


@dataclass(frozen=True)
class SkippedLines:
    """A row of a cell with a magic or a shell command."""

    row: int
    text: str


@dataclass(frozen=True)
class Cell:
    """A code cell: its number among all cells, from 1, and its text as Python.

    Rows and columns are those of the notebook. count is the execution count, None for a cell without a run.
    """

    number: int
    text: str
    skipped_lines: tuple[SkippedLines, ...] = ()
    count: int | None = None


def cells(data: bytes) -> tuple[Cell, ...]:
    """Parse the Python cells of a notebook. Raises Unreadable."""
    return tuple(
        replace(python_cell(number, typed_text(cell)), count=execution_count(cell))
        for number, cell in code_cells(data)
    )


def code_cells(data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each Python cell among all cells, from 1, and its JSON. Raises Unreadable."""
    if not data.strip():
        raise Unreadable("is empty, not a notebook")
    try:
        notebook = json.loads(data)
        found = _cells(notebook)
        language = _language(notebook)
    except (ValueError, RecursionError):
        raise Unreadable("is not a notebook: it is not JSON") from None
    except (KeyError, TypeError, AttributeError):
        raise Unreadable("is not a notebook: it has no cells") from None
    if language not in (None, "python"):
        raise OtherLanguage(f"is a notebook in {language}, not in Python")
    yield from ((number, cell) for number, cell in enumerate(found, 1) if _is_python(cell))


def _cells(notebook: dict[str, Any]) -> list[Any]:
    """Return the cells; in nbformat 3 they are in worksheets."""
    if "cells" not in notebook and "worksheets" in notebook:
        return [cell for sheet in notebook["worksheets"] for cell in sheet["cells"]]
    return list(notebook["cells"])


def _language(notebook: dict[str, Any]) -> str | None:
    about = _mapping(notebook.get("metadata"))
    info, kernel = _mapping(about.get("language_info")), _mapping(about.get("kernelspec"))
    name = info.get("name") or kernel.get("language")
    return name.lower() if isinstance(name, str) else None


def _is_python(cell: Any) -> bool:
    if not isinstance(cell, dict) or cell.get("cell_type") != "code":
        return False
    about = _mapping(cell.get("metadata"))
    return _mapping(about.get("vscode")).get("languageId") in (None, "python")


def _mapping(value: Any) -> dict[str, Any]:
    """Return the value; an empty object for one of another type, as damaged notebooks have."""
    return value if isinstance(value, dict) else {}


def execution_count(cell: dict[str, Any]) -> int | None:
    """Return the execution count of a cell, None for a cell without a run."""
    count = cell.get("execution_count", cell.get("prompt_number"))
    return count if isinstance(count, int) else None


def typed_text(cell: dict[str, Any]) -> str:
    """Return the source of a cell as its author typed it."""
    source = cell.get("source", cell.get("input", ""))
    parts = source if isinstance(source, list) else [source]
    return "".join(part for part in parts if isinstance(part, str))


# The rest of the cell or row is Python; the magic only measures or stores something.
_AROUND_CODE = ("capture", "prun", "time", "timeit")
# Magics of shapefix: the cell runs after them, unless this option is given.
_AROUND_CELL = re.compile(r"\s*%%(?:check|shapes)\b(?!.*\s--no-run\b)")
# Magics that only change the display or the IPython session.
_HARMLESS = (
    "autoreload", "colors", "config", "history", "html", "latex", "load_ext", "markdown", "matplotlib", "pdb",
    "precision", "pylab", "reload_ext", "shapefix", "svg", "who", "whos", "xmode",
)  # fmt: skip

_CELL_MAGIC = re.compile(r"\s*%%(\w+)")
_LINE_MAGIC = re.compile(r"(\s*)%(\w+)((?:\s+-\w+(?:\s+\d+)?)*\s*)(.*)", re.DOTALL)
_RUN_FILE = re.compile(r"[\"']?([\w./-]+\.py)[\"']?")
_SHELL = re.compile(
    r"\s*(?:!|(?:pip3?|conda|mamba)\s+(?:install|uninstall|list|show)\b"
    r"|(?:cd|ls|mkdir|rmdir|cp|mv|rm)\s+[\w./~\"'$-](?!.*[=(]))"
)
_ASSIGNED = re.compile(r"(\s*[^=!%'\"#()]+=\s*)[!%](?=[\w/.])")
_TIMED = re.compile(r"([^=!%'\"#()]+=\s*)%time(?=\s+\w)")
_HELP = re.compile(r"\s*(?:\?{1,2}\s*[\w.*%]+|[\w.*%]+\?{1,2})\s*(?:#.*)?\Z")


def python_cell(number: int, text: str) -> Cell:
    """Return a cell as Python; its rows are those of the typed text."""
    rows = rows_of(text) or [""]
    # Colab and Jupyter's form titles: comments may stand before the magic.
    first = next((n for n, row in enumerate(rows) if row.strip() and not row.lstrip().startswith("#")), 0)
    magic = _CELL_MAGIC.match(rows[first])
    if magic is not None:
        if magic[1] not in _AROUND_CODE and not _AROUND_CELL.match(rows[first]):
            said = () if magic[1] in _HARMLESS else (SkippedLines(first + 1, rows[first].strip()),)
            return Cell(number, "", said)
        rows[first] = _end_of(rows[first])
    skipped_lines: list[SkippedLines] = []
    made = "".join(_python(rows, skipped_lines))
    return Cell(number, made, tuple(skipped_lines))


def _python(rows: list[str], skipped_lines: list[SkippedLines]) -> Iterator[str]:
    """Replace IPython syntax in the rows; add it to skipped unless it is harmless."""
    state, foreign = _State(), False
    for number, row in enumerate(rows, 1):
        if foreign:  # the previous row continues in this one
            foreign = row.rstrip().endswith("\\")
            yield _end_of(row)
            continue
        made = _replaced(row) if state.begins else None
        if made is None:
            state.read(row)
            yield row
            continue
        python, harmless = made
        foreign = row.rstrip().endswith("\\")
        if not harmless:
            skipped_lines.append(SkippedLines(number, row.strip()))
        state.read(python)
        yield python + _end_of(row)


def _replaced(row: str) -> tuple[str, bool] | None:
    """Replace a row starting with IPython syntax, and return whether that loses nothing.

    None for a row of Python.
    """
    bare = row.rstrip("\r\n")
    indent = bare[: len(bare) - len(bare.lstrip())]
    magic = _LINE_MAGIC.match(bare)
    if magic is not None:
        if (
            magic[2] == "run"
            and (file := _RUN_FILE.fullmatch(magic[4].strip()))
            and not magic[3].strip(" -i")
        ):
            # As IPython runs it: a script, whose names are those of the notebook afterwards.
            return f'{indent}exec(open("{file[1]}").read())', True
        if magic[2] in _AROUND_CODE and magic[4]:
            # As wide as what was there, so that columns stay what they are.
            return f"{indent}{'if 1':<{len(magic[2]) + len(magic[3])}}:{magic[4]}", True
        return f"{indent}pass", magic[2] in _HARMLESS or magic[2] in _AROUND_CODE
    if _SHELL.match(bare):
        return f"{indent}pass", False
    timed = _TIMED.match(bare)
    if timed is not None:
        return f"{timed[1]}{'':5}{bare[timed.end() :]}", True
    assigned = _ASSIGNED.match(bare)
    if assigned is not None:
        return f"{assigned[1]}[]", False
    return (f"{indent}pass", True) if _HELP.match(bare) else None


def _end_of(row: str) -> str:
    return row[len(row.rstrip("\r\n")) :]


class _State:
    """Tracks whether the rows so far leave a bracket, a string or a row open."""

    def __init__(self) -> None:
        self._depth = 0
        self._quote = ""
        self._continued = False

    @property
    def begins(self) -> bool:
        """Check whether the next row begins a statement."""
        return not (self._depth or self._quote or self._continued)

    def read(self, row: str) -> None:
        """Update the state with one row."""
        place, bare = 0, row.rstrip("\r\n")
        while place < len(bare):
            if bare[place] == "\\":
                place += 2
                continue
            if self._quote:
                if bare.startswith(self._quote, place):
                    place += len(self._quote)
                    self._quote = ""
                else:
                    place += 1
                continue
            if bare[place] == "#":
                break
            if bare[place] in "\"'":
                triple = bare[place] * 3
                self._quote = triple if bare.startswith(triple, place) else bare[place]
                place += len(self._quote)
                continue
            self._depth += (bare[place] in "([{") - (bare[place] in ")]}")
            place += 1
        self._depth = max(self._depth, 0)
        self._continued = bare.endswith("\\") and not self._quote
        if len(self._quote) == 1 and not bare.endswith("\\"):
            self._quote = ""
