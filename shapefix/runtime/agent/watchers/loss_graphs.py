"""The graphs of the first losses: their operations, and the parameters at their leaves."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import nn

_LOSSES, _NODES = 8, 50_000


class LossGraphs:
    """The operations and parameters in the graphs of one session's losses."""

    def __init__(self) -> None:
        self.operations: set[int] = set()
        self.parameters: dict[int, nn.Parameter] = {}
        self._losses = 0

    def add(self, loss: Any) -> None:
        """Follow the graph of a loss; only the first losses count."""
        if self._losses >= _LOSSES or not isinstance(loss, torch.Tensor):
            return
        self._losses += 1
        with contextlib.suppress(Exception):  # older versions of torch expose less of their graph
            self._follow(loss.grad_fn)

    def _follow(self, node: Any) -> None:
        waiting, seen = [node], {node}
        while waiting and len(seen) < _NODES:
            node = waiting.pop()
            if node is None:
                continue
            variable = getattr(node, "variable", None)
            if variable is None:
                self.operations.add(node._sequence_nr())
            elif isinstance(variable, nn.Parameter):
                self.parameters[id(variable)] = variable
            for each, _ in node.next_functions:
                if each not in seen:
                    seen.add(each)
                    waiting.append(each)
