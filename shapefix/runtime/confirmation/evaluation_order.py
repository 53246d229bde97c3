"""Evaluation order: the expressions evaluated before a reached place of a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from shapefix.diagnostics import Span

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_INNER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

Block: TypeAlias = Sequence[ast.stmt]


class Order:
    """The order of evaluation of the expressions of one file, from its blocks.

    Raises SyntaxError and ValueError where the text is not Python.
    """

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._tree = ast.parse(text)
        self._text = text
        self._ways: dict[Span, list[ast.AST]] = {}

    @cached_property
    def _rows(self) -> list[str]:
        return self._text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def before(self, place: Span, reached: Span) -> bool:
        """Whether a run at the call at reached has evaluated place right before, in one frame."""
        one, other = self._way(place), self._way(reached)
        if not one or not other or _scope(one) is not _scope(other) or not _evaluated(one):
            return False
        statement = _statement(one)
        if statement in other:
            call = other[-1]
            inner = isinstance(call, ast.Call) and self._span(call) == reached and call in one[:-1]
            return inner or _body_of(statement, other)
        block = _block(one)
        return any(statement in block[:at] for at in range(1, len(block)) if block[at] in other)

    def when_returned(self, place: Span, row: int) -> bool:
        """Whether place was evaluated if the function at a row has returned."""
        way = self._way(place)
        function = _scope(way)
        if not isinstance(function, _FUNCTIONS) or not _evaluated(way) or _first_row(function) != row:
            return False
        statement = _statement(way)
        if statement not in function.body:
            return False
        earlier = function.body[: function.body.index(statement)]
        return not any(isinstance(node, (ast.Return, ast.Yield)) for each in earlier for node in _own(each))

    def bound_between(self, place: Span, reached: Span) -> frozenset[str] | None:
        """The names bound on the path from one to the other, in either order; None if unknown."""
        one, other = self._way(place), self._way(reached)
        if not one or not other or _scope(one) is not _scope(other):
            return None
        block, statement = _block(one), _statement(one)
        here = next((at for at, each in enumerate(block) if each in other), None)
        if here is None:
            return None
        at = block.index(statement)
        between = list(block[min(at, here) : max(at, here)])
        if at <= here and not _simple(block[here]):
            between.append(block[here])
        return frozenset(name for each in between for name in _bound(each))

    def function(self, place: Span) -> int | None:
        """Return the first row of the function around a place, None outside of functions."""
        function = _scope(self._way(place))
        return _first_row(function) if isinstance(function, _FUNCTIONS) else None

    def loops(self, place: Span) -> list[Span]:
        """The headers of the loops around a place, within its function."""
        way = self._way(place)
        scope = _scope(way)
        inside = way[way.index(scope) :] if scope is not None else []
        found = []
        for node in inside:
            if isinstance(node, (ast.For, ast.AsyncFor)):
                found.append(self._span(node.iter))
            elif isinstance(node, ast.While):
                found.append(self._span(node.test))
        return [each for each in found if each is not None]

    def _way(self, place: Span) -> list[ast.AST]:
        """The nodes around a place, from the module inwards to the smallest one around all of it."""
        if place not in self._ways:
            way: list[ast.AST] = []
            inner: ast.AST | None = self._tree
            while inner is not None:
                way.append(inner)
                inside = ast.iter_child_nodes(inner)
                inner = next((each for each in inside if self._holds(each, place)), None)
            self._ways[place] = way if len(way) > 1 else []
        return self._ways[place]

    def _holds(self, node: ast.AST, place: Span) -> bool:
        span = self._span(node)
        if span is None:  # such as the arguments of a function, which have no place of their own
            return any(self._holds(each, place) for each in ast.iter_child_nodes(node))
        start, end = (place.row, place.column), (place.end_row, place.end_column)
        return (span.row, span.column) <= start and end <= (span.end_row, span.end_column)

    def _span(self, node: ast.AST) -> Span | None:
        if not isinstance(node, (ast.stmt, ast.expr, ast.excepthandler, ast.keyword, ast.arg, ast.pattern)):
            return None
        row, end_row = node.lineno, node.end_lineno or node.lineno
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            row = _first_row(node)
        return Span(
            self._path,
            row,
            1 if row != node.lineno else self._column(row, node.col_offset),
            end_row,
            self._column(end_row, node.end_col_offset or 0),
        )

    def _column(self, row: int, offset: int) -> int:
        """The column of an offset in bytes."""
        line = self._rows[row - 1] if row <= len(self._rows) else ""
        return offset + 1 if line.isascii() else len(line.encode()[:offset].decode("utf-8", "ignore")) + 1


def _scope(way: Sequence[ast.AST]) -> ast.AST | None:
    """The innermost function or class around the last node, or the module."""
    return next((node for node in reversed(way) if isinstance(node, (*_SCOPES, ast.Module))), None)


def _statement(way: Sequence[ast.AST]) -> ast.stmt:
    return next(node for node in reversed(way) if isinstance(node, ast.stmt))


def _block(way: Sequence[ast.AST]) -> Block:
    """Return the block of the innermost statement of a path."""
    statement = _statement(way)
    parent = way[way.index(statement) - 1]
    for _, value in ast.iter_fields(parent):
        if isinstance(value, list) and statement in value:
            return value
    return [statement]


def _evaluated(way: Sequence[ast.AST]) -> bool:
    """Check whether the last node is always evaluated with its statement: no lambda, no `or` before it."""
    inside = way[way.index(_statement(way)) :] if any(isinstance(each, ast.stmt) for each in way) else []
    for outer, inner in pairwise(inside):
        match outer:
            case ast.IfExp(test=sure) | ast.BoolOp(values=[sure, *_]) | ast.Assert(test=sure):
                if inner is not sure:
                    return False
            case ast.Compare(left=left, comparators=[first, *_]):
                if inner is not left and inner is not first:
                    return False
            case _ if isinstance(outer, (*_INNER, ast.ExceptHandler, ast.match_case)):
                return False
    return bool(inside)


def _body_of(statement: ast.stmt, way: Sequence[ast.AST]) -> bool:
    """Whether a path leads from the header of a statement into another statement inside it."""
    return _statement(way) is not statement and not isinstance(statement, (*_SCOPES, ast.Try))


def _simple(statement: ast.stmt) -> bool:
    return not any(isinstance(each, ast.stmt) for each in ast.iter_child_nodes(statement))


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those inside it, without functions and classes of its own."""
    yield node
    for each in ast.iter_child_nodes(node):
        if not isinstance(each, _SCOPES):
            yield from _own(each)


def _bound(statement: ast.stmt) -> Iterator[str]:
    for node in _own(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]
        elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            yield node.name


def _first_row(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    return min(each.lineno for each in (node, *node.decorator_list))
