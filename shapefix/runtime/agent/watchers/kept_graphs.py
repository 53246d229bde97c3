"""Losses kept with their graph after backward: in a sum over batches, or in a list."""

from __future__ import annotations

import ast
import linecache
from collections import deque
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

import torch

from ...protocol import KeptGraphLine, UserPlace
from .. import frames
from ..session import Session
from .loss_graphs import graph_nodes

_LOSSES, _NODES, _ELEMENTS, _FRAMES = 8, 400, 64, 3
_ADDING = ("append", "add", "extend", "appendleft", "insert", "update")


class KeptGraphs:
    """The losses of one session after their backward calls."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._losses: set[int] = set()
        self._done: set[str] = set()

    def backward(self, loss: Any) -> None:
        """Note a loss before its backward call."""
        if len(self._losses) < _LOSSES and isinstance(loss, torch.Tensor) and loss.grad_fn is not None:
            self._losses.add(loss.grad_fn._sequence_nr())

    def batch_requested(self, caller: FrameType) -> None:
        """Write a line for each variable with the graphs of two losses or more."""
        if len(self._losses) < 2 or self._session.sizes_only:
            return
        for _, frame in zip(range(_FRAMES), frames.users(caller), strict=False):
            for name, value in _values(frame):
                if name not in self._done and len(self._graphs_in(value)) > 1:
                    self._done.add(name)
                    self._session.sink.write(
                        KeptGraphLine(
                            kind="kept_graph",
                            name=name,
                            is_sum=isinstance(value, torch.Tensor),
                            stored_at=_stored_at(frame.f_code, name) or frames.site(frame),
                        )
                    )

    def _graphs_in(self, value: Any) -> set[int]:
        """The losses with a graph kept by a value."""
        if isinstance(value, torch.Tensor):
            if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.grad_fn is None:
                return set()
            nodes = graph_nodes(value.grad_fn, _NODES, self._losses)
            return {node._sequence_nr() for node in nodes} & self._losses
        if isinstance(value, deque) and value.maxlen is not None:
            return set()
        if not isinstance(value, (list, tuple, deque, dict)):
            return set()
        held = list(value.values() if isinstance(value, dict) else value)
        found: set[int] = set()
        for each in held[-_ELEMENTS:]:
            if isinstance(each, (torch.Tensor, list, tuple)):
                found |= self._graphs_in(each)
        return found


def _values(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """The variables of a frame, and the attributes of its `self`."""
    held: Mapping[str, Any] = dict(frame.f_locals)
    yield from ((name, value) for name, value in held.items() if not name.startswith("__"))
    own = getattr(held.get("self"), "__dict__", None)
    if isinstance(own, dict):
        yield from ((f"self.{name}", value) for name, value in list(own.items()))


def _stored_at(code: CodeType, name: str) -> UserPlace | None:
    """The first statement of a function to add to a variable: `name += …` or `name.append(…)`."""
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except (SyntaxError, ValueError, RecursionError):
        return None
    scope: ast.AST = tree
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            scope = node if first == code.co_firstlineno else scope
    for node in ast.walk(scope):
        if isinstance(node, (ast.AugAssign, ast.Assign, ast.Expr)) and _adds(node, name):
            return UserPlace(
                file=code.co_filename,
                row=node.lineno,
                column=node.col_offset + 1,
                end_row=node.end_lineno or node.lineno,
                end_column=(node.end_col_offset or node.col_offset) + 1,
                function=code.co_name,
            )
    return None


def _adds(node: ast.AugAssign | ast.Assign | ast.Expr, name: str) -> bool:
    if isinstance(node, ast.AugAssign):
        return ast.unparse(node.target).startswith(name)
    if isinstance(node, ast.Assign):
        is_target = any(ast.unparse(each) == name for each in node.targets)
        return is_target and any(ast.unparse(each) == name for each in ast.walk(node.value) if _is_name(each))
    call = node.value
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in _ADDING
        and ast.unparse(call.func.value).startswith(name)
    )


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute))
