"""The graphs of the first losses: their operations, and the parameters at their leaves."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch import nn

_LOSSES, _NODES = 8, 50_000


class LossGraphs:
    """The operations and parameters in the graphs of one session's losses."""

    def __init__(self) -> None:
        self.operations: set[int] = set()
        self.parameters: dict[int, nn.Parameter] = {}
        self.tensors: dict[int, torch.Tensor] = {}
        self._losses = 0

    def add(self, loss: Any) -> None:
        """Follow the graph of a loss; only the first losses count."""
        if self._losses >= _LOSSES or not isinstance(loss, torch.Tensor):
            return
        self._losses += 1
        with contextlib.suppress(Exception):  # older versions of torch expose less of their graph
            self._follow(loss.grad_fn)

    def _follow(self, node: Any) -> None:
        for each in graph_nodes(node):
            variable = getattr(each, "variable", None)
            if variable is None:
                self.operations.add(each._sequence_nr())
            elif isinstance(variable, nn.Parameter):
                self.parameters[id(variable)] = variable
            else:
                self.tensors[id(variable)] = variable

    def weights(self) -> list[Any]:
        """The parameters of the losses, or, without any, the other leaves of their graphs."""
        return list(self.parameters.values()) or list(self.tensors.values())


def graph_nodes(node: Any, limit: int = _NODES, ends: Collection[int] = ()) -> Iterator[Any]:
    """The nodes of a graph, nearest first, up to a limit, and not past those with a number in ends."""
    waiting, seen = deque([node]), {node}
    while waiting and len(seen) < limit:
        node = waiting.popleft()
        if node is None:
            continue
        yield node
        if ends and node._sequence_nr() in ends:
            continue
        for each, _ in node.next_functions:
            if each not in seen:
                seen.add(each)
                waiting.append(each)
