"""Positions of nodes, as libcst's PositionProvider computes them, in a third of its time."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import libcst as cst
from libcst.metadata import PositionProvider
from libcst.metadata.position_provider import PositionProvidingCodegenState

Range = tuple[int, int, int, int]
"""Row and column of the start, then of the end; rows count from 1, columns from 0."""


def positions_of(tree: cst.Module) -> dict[int, Range]:
    """Compute the positions of all nodes of a tree, by the ids of the nodes."""
    state = _Positions(tree.default_indent, tree.default_newline, PositionProvider())
    if tree.header or tree.body or tree.footer:
        # An empty text alone ends with a row that no node writes.
        state.tokens.append("")
    tree._codegen(state)
    return state.found


class _Positions(PositionProvidingCodegenState):
    """Position in the text while libcst writes the code of a tree; the code itself is not kept."""

    def __init__(self, indent: str, newline: str, provider: PositionProvider) -> None:
        super().__init__(indent, newline, provider)
        self.found: dict[int, Range] = {}
        self._starts: list[tuple[int, int]] = []

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.column += len(token)

    def add_token(self, value: str) -> None:
        if "\n" not in value and "\r" not in value:
            self.column += len(value)
        else:
            self._update_position(value)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self._starts.append((self.line, self.column))

    def after_codegen(self, node: cst.CSTNode) -> None:
        row, column = self._starts.pop()
        # A node without its whitespace is recorded already.
        if id(node) not in self.found:
            self.found[id(node)] = (row, column, self.line, self.column)

    def record_syntactic_position(  # type: ignore[override]
        self,
        node: cst.CSTNode,
        *,
        start_node: cst.CSTNode | None = None,
        end_node: cst.CSTNode | None = None,
    ) -> AbstractContextManager[None]:
        return _Recorded(self, node, start_node, end_node)


class _Recorded(AbstractContextManager[None]):
    """Context around the code of a node without its whitespace, from one inner node to another if given."""

    __slots__ = ("_column", "_end", "_node", "_row", "_start", "_state")

    def __init__(
        self, state: _Positions, node: cst.CSTNode, start: cst.CSTNode | None, end: cst.CSTNode | None
    ) -> None:
        self._state = state
        self._node = node
        self._start = start
        self._end = end
        self._row = state.line
        self._column = state.column

    def __enter__(self) -> None:
        self._row, self._column = self._state.line, self._state.column

    def __exit__(self, *error: Any) -> None:
        state = self._state
        start = (self._row, self._column) if self._start is None else state.found[id(self._start)][:2]
        end = (state.line, state.column) if self._end is None else state.found[id(self._end)][2:]
        state.found[id(self._node)] = (*start, *end)
