"""The sizes in a cell: those of its functions and modules, and of its own statements."""

from __future__ import annotations

import ast
import textwrap
import warnings
from dataclasses import replace

from shapefix.diagnostics import path_of
from shapefix.engine.settings import CheckOptions, Settings
from shapefix.ipython.session_cells import SessionCells
from shapefix.sizes.listings import ShapeListing
from shapefix.sizes.run import ListingFailed, shapes
from shapefix.sizes.targets import UnknownTarget
from shapefix.sources.notebooks import python_cell
from shapefix.sources.text import in_memory

_FUNCTION = "cell_in_execution"
"""The name of the function around the statements of a cell, for its listing."""
_BASIS = "sizes from the cells before it"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def cell_listings(path: str, cells: SessionCells, number: int, text: str) -> list[ShapeListing]:
    """Return the listings of a cell: of its definitions, then of its statements."""
    code = python_cell(number, text).text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    rules = Settings(CheckOptions()).rules(path)
    found: list[ShapeListing] = []
    with in_memory(path, cells.notebook(number, text)):
        for node in tree.body:
            if isinstance(node, _DEFINITIONS):
                try:
                    found += map(_without_option, shapes(path, node.name, (), rules, None))
                except (UnknownTarget, ListingFailed):
                    continue
    first = next((node.lineno for node in tree.body if not isinstance(node, _DEFINITIONS)), None)
    if first is None:
        return found
    body = textwrap.indent(code, "    ", lambda row: True)
    wrapped = f"def {_FUNCTION}():\n{body}\n{_FUNCTION}()\n"
    with in_memory(path, cells.notebook(number, wrapped)):
        try:
            own = shapes(path, _FUNCTION, (), rules, None)
        except (UnknownTarget, ListingFailed):
            return found
    return [*found, *(_unwrapped(each, path, number) for each in own)]


def _without_option(listing: ShapeListing) -> ShapeListing:
    """Return a listing without the hint at an option of the command line."""
    return replace(listing, basis=listing.basis.partition("; specify the input: ")[0])


def _unwrapped(listing: ShapeListing, path: str, number: int) -> ShapeListing:
    """Return the listing of the function as one of the cell's rows."""
    rows = [
        replace(row, number=row.number - 1, source=row.source.removeprefix("    "))
        for row in listing.rows
        if not row.source.startswith(f"def {_FUNCTION}")
    ]
    while len(rows) > 1 and not rows[0].source.strip():
        del rows[0]
    return replace(listing, name="this cell", path=path_of(path, number), rows=tuple(rows), basis=_BASIS)
