"""The order of a notebook's cells: that of the document, or that of the run."""

from __future__ import annotations

import ast
import builtins
import warnings
from collections.abc import Iterator, Sequence

from shapefix.light_dataclasses import dataclass
from shapefix.sources.notebooks import Cell

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_GIVEN = frozenset({*dir(builtins), "__name__", "__file__", "get_ipython", "display", "In", "Out", "_", "__"})
"""Names that exist before the first cell."""


@dataclass(frozen=True)
class _Names:
    """The names of a cell: needed from other cells, and bound by it."""

    needed: frozenset[str]
    bound: frozenset[str]


def in_run_order(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    """Return the cells as they can have run.

    Another order than that of the document is taken if a cell needs a name of a later one, and the execution
    counts say that the later one ran first. Cells without a count stay after the one before them.
    """
    counts = [cell.count for cell in cells if cell.count is not None]
    if counts == sorted(counts) or len(set(counts)) < len(counts):
        return tuple(cells)
    names = {cell.number: found for cell in cells if (found := _names(cell.text)) is not None}
    if len(names) < len(cells):
        return tuple(cells)
    missing = _missing(cells, names)
    if not missing:
        return tuple(cells)
    ordered = _by_count(cells)
    return ordered if not _missing(ordered, names) else tuple(cells)


def _by_count(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    groups: list[tuple[int, list[Cell]]] = [(0, [])]
    for cell in cells:
        if cell.count is not None:
            groups.append((cell.count, []))
        groups[-1][1].append(cell)
    return tuple(cell for _, group in sorted(groups, key=lambda each: each[0]) for cell in group)


def _missing(cells: Sequence[Cell], names: dict[int, _Names]) -> set[str]:
    """Return the names needed too early, before they are bound."""
    everywhere = {name for each in names.values() for name in each.bound}
    known: set[str] = set()
    missing: set[str] = set()
    for cell in cells:
        own = names[cell.number]
        missing |= (own.needed & everywhere) - known
        known |= own.bound
    return missing


def _names(text: str) -> _Names | None:
    """Return the names of a cell; None if they are not known: a star import, or a syntax error."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = compile(text, "<cell>", "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _Names(frozenset(), frozenset())
    bound: set[str] = set()
    needed: set[str] = set()
    for statement in tree.body:
        loads: set[str] = set()
        stores: set[str] = set()
        for name, is_bound in _at_top_level(statement):
            if name == "*":
                return None
            (stores if is_bound else loads).add(name)
        if isinstance(
            statement, (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.While, ast.If, ast.Try)
        ):
            loads -= stores
        needed |= loads - _variables_of_comprehensions(statement) - bound - _GIVEN
        bound |= stores
    return _Names(frozenset(needed), frozenset(bound))


def _variables_of_comprehensions(statement: ast.stmt) -> set[str]:
    """Return the variables of the comprehensions in a statement."""
    return {
        name.id
        for node in ast.walk(statement)
        if isinstance(node, ast.comprehension)
        for name in ast.walk(node.target)
        if isinstance(name, ast.Name)
    }


def _at_top_level(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield the names in a statement, and whether it binds them; bodies of functions wait."""
    if isinstance(node, ast.Name):
        yield node.id, not isinstance(node.ctx, ast.Load)
        return
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield (alias.asname or alias.name.partition(".")[0]), True
        return
    if isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name, True
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name, True
    skipped: Sequence[ast.AST] = ()
    if isinstance(node, _FUNCTIONS):
        skipped = [*(node.body if isinstance(node.body, list) else [node.body]), node.args]
    elif isinstance(node, ast.ClassDef):
        skipped = node.body
    for child in ast.iter_child_nodes(node):
        if child not in skipped:
            yield from _at_top_level(child)
