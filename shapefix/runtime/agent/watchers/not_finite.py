"""The first module or operation with a nan or infinite result."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from ...protocol import NonFiniteSource
from .loss_graphs import graph_nodes

_TENSORS, _NODES, _KEPT = 3, 400, 4000

Sum = tuple[NonFiniteSource, torch.Tensor]
"""A module, and the sum of all numbers of one of its tensors, still on its device."""


class ModuleSums:
    """The sums of the inputs and outputs of modules since the last backward; a finite sum has finite terms.

    They are read only once a loss is not finite, so that the script never waits for a GPU.
    """

    def __init__(self) -> None:
        self._sums: list[Sum] = []

    def add(self, source: NonFiniteSource, value: Any) -> None:
        """Add an input or output of a module."""
        if len(self._sums) > _KEPT:
            return
        with torch.no_grad(), contextlib.suppress(Exception):
            for tensor in _floats(value):
                total = tensor.detach().sum(dtype=torch.promote_types(tensor.dtype, torch.float32))
                self._sums.append((source, total))

    def clear(self) -> None:
        """Remove all sums: the next ones belong to another loss."""
        self._sums.clear()

    def first_not_finite(self) -> NonFiniteSource | None:
        """The first module with a nan or infinite input or output, if any."""
        for source, total in self._sums:
            with contextlib.suppress(Exception):
                if not math.isfinite(float(total)):
                    return source
        return None


def _floats(value: Any) -> Iterator[torch.Tensor]:
    """The first few floating-point tensors in a value, without looking into nested containers."""
    if isinstance(value, Mapping):
        value = list(value.values())
    found = 0
    for each in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(each, torch.Tensor) and each.is_floating_point() and found < _TENSORS:
            found += 1
            yield each


def faulty_operation(loss: torch.Tensor) -> str | None:
    """The first operation in the graph of a loss with a nan or infinite result, in words, if any."""
    found = None
    for node in graph_nodes(loss.grad_fn, _NODES):
        fault = _fault(node)
        if fault is not None:
            number = node._sequence_nr()
            if found is None or number < found[0]:
                found = number, fault
    return None if found is None else found[1]


def _fault(node: Any) -> str | None:
    """The fault of one operation, from its tensors saved for backward."""
    name = node.name().rstrip("0123456789")
    for operation, saved, is_fault, text in _FAULTS:
        if name == operation:
            # A saved tensor may have been freed, or written to since.
            with contextlib.suppress(Exception):
                tensor = getattr(node, saved).detach()
                if bool(is_fault(tensor).any()):
                    least, greatest = float(tensor.min()), float(tensor.max())
                    return text.format(least=f"{least:.4g}", greatest=f"{greatest:.4g}")
    return None


_FAULTS: tuple[tuple[str, str, Callable[[torch.Tensor], torch.Tensor], str], ...] = (
    ("LogBackward", "_saved_self", lambda x: x <= 0, "a logarithm of numbers from {least}"),
    ("Log1PBackward", "_saved_self", lambda x: x <= -1, "a logarithm of 1 plus numbers from {least}"),
    ("DivBackward", "_saved_other", lambda x: x == 0, "a division by 0"),
    ("ReciprocalBackward", "_saved_result", torch.isinf, "a division by 0"),
    ("SqrtBackward", "_saved_result", torch.isnan, "a square root of negative numbers"),
    ("ExpBackward", "_saved_result", torch.isinf, "an exponential that overflows"),
    ("AcosBackward", "_saved_self", lambda x: x.abs() > 1, "an arc cosine of numbers up to {greatest}"),
)
