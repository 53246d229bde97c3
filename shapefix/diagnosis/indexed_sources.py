"""Parsed files of a project with lists of their nodes, for many searches in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from operator import attrgetter

from shapefix.diagnosis.project_frames import searched_sources
from shapefix.diagnosis.whole_texts import WholeText, whole_text
from shapefix.engine.parse_limits import LARGEST
from shapefix.sources.text import Unreadable


class IndexedSource:
    """A parsed file."""

    def __init__(self, whole: WholeText, tree: ast.Module) -> None:
        self.whole = whole
        self.tree = tree

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def functions(self) -> list[ast.FunctionDef]:
        return [node for node in self._nodes if isinstance(node, ast.FunctionDef)]

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in self._nodes if isinstance(node, ast.ClassDef)]

    @cached_property
    def imports(self) -> list[ast.ImportFrom]:
        return [node for node in self._nodes if isinstance(node, ast.ImportFrom)]

    @cached_property
    def module_imports(self) -> list[ast.Import]:
        return [node for node in self._nodes if isinstance(node, ast.Import)]

    @cached_property
    def assignments(self) -> list[ast.Assign]:
        return [node for node in self._nodes if isinstance(node, ast.Assign)]

    @cached_property
    def calls(self) -> list[ast.Call]:
        return [node for node in self._nodes if isinstance(node, ast.Call)]

    @cached_property
    def dictionaries(self) -> list[ast.Dict]:
        return [node for node in self._nodes if isinstance(node, ast.Dict)]

    @cached_property
    def statements(self) -> list[ast.stmt]:
        return [node for node in self._nodes if isinstance(node, ast.stmt)]

    @cached_property
    def _by_row(self) -> dict[int, list[tuple[int, ast.expr]]]:
        found: dict[int, list[tuple[int, ast.expr]]] = {}
        for number, node in enumerate(self._nodes):
            if isinstance(node, ast.expr):
                found.setdefault(node.lineno, []).append((number, node))
        return found

    def expressions(self, first: int, last: int) -> Iterator[ast.expr]:
        """Yield the expressions with a start in some rows, the outer ones first."""
        last = min(last, self.whole.text.count("\n") + 1)
        found = [each for row in range(first, last + 1) for each in self._by_row.get(row, ())]
        yield from (node for _, node in sorted(found, key=lambda each: each[0]))

    def function_around(self, row: int) -> ast.FunctionDef | None:
        """Return the innermost function around a row."""
        around = [node for node in self.functions if node.lineno < row <= (node.end_lineno or 0)]
        return max(around, key=attrgetter("lineno"), default=None)

    def class_around(self, row: int) -> ast.ClassDef | None:
        """Return the innermost class around a row."""
        around = [node for node in self.classes if node.lineno < row <= (node.end_lineno or 0)]
        return max(around, key=attrgetter("lineno"), default=None)


class IndexedSources:
    """The parsed files of the project in a folder; without a folder only the named ones."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._found: dict[str, IndexedSource | None] = {}

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The sources below the folder."""
        return tuple(searched_sources(self.folder)) if self.folder else ()

    def of(self, path: str, text: str = "") -> IndexedSource | None:
        """Return a file with a text in it; None without it, or for a broken file."""
        if path in self._found:
            return self._found[path]
        try:
            whole = whole_text(path)
            if text not in whole.text:
                return None
            is_small = len(whole.text) <= LARGEST
            self._found[path] = IndexedSource(whole, ast.parse(whole.text)) if is_small else None
        except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
            self._found[path] = None
        return self._found[path]
