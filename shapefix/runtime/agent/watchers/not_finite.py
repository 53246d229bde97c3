"""Where the first number that is not finite comes from, asked only once the loss is not."""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

_TENSORS, _NODES, _KEPT = 3, 400, 4000

Sum = tuple[dict[str, Any], torch.Tensor]
"""Whose number it is, and the sum of all numbers of one tensor, still on its device."""


class Sums:
    """The sums of what modules took and gave since the last backward: a sum is finite where all of it is.

    None is read before a loss is not finite, so that a GPU is never waited for.
    """

    def __init__(self) -> None:
        self._sums: list[Sum] = []

    def see(self, whose: dict[str, Any], value: Any) -> None:
        """Take in a value that a module took or gave."""
        if len(self._sums) > _KEPT:
            return
        with torch.no_grad(), contextlib.suppress(Exception):
            for tensor in _floats(value):
                total = tensor.detach().sum(dtype=torch.promote_types(tensor.dtype, torch.float32))
                self._sums.append((whose, total))

    def clear(self) -> None:
        """Forget them: the next ones belong to another loss."""
        self._sums.clear()

    def first(self) -> dict[str, Any] | None:
        """The first that was not finite: whose it was and what the sum is; None where all were."""
        for whose, total in self._sums:
            with contextlib.suppress(Exception):
                number = float(total)
                if not math.isfinite(number):
                    return {**whose, "sum": repr(number)}
        return None


def _floats(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of real numbers in a value, the first few, not looking far."""
    if isinstance(value, Mapping):
        value = list(value.values())
    found = 0
    for each in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(each, torch.Tensor) and each.is_floating_point() and found < _TENSORS:
            found += 1
            yield each


def operation(loss: torch.Tensor) -> str | None:
    """What in the graph of a loss makes numbers that are not finite, in words; None where that is not seen.

    Of several it is the one that comes first in the computation.
    """
    found = None
    seen: set[Any] = set()
    waiting = deque([loss.grad_fn])
    while waiting and len(seen) < _NODES:
        node = waiting.popleft()
        if node is None or node in seen:
            continue
        seen.add(node)
        told = _told(node)
        if told is not None:
            number = node._sequence_nr()
            if found is None or number < found[0]:
                found = number, told
        waiting.extend(each for each, _ in node.next_functions)
    return None if found is None else found[1]


def _told(node: Any) -> str | None:
    name = node.name().rstrip("0123456789")
    for operation, saved, is_fault, words in _FAULTS:
        if name == operation:
            # What was saved may have been freed, or written to since.
            with contextlib.suppress(Exception):
                tensor = getattr(node, saved).detach()
                if bool(is_fault(tensor).any()):
                    least, greatest = float(tensor.min()), float(tensor.max())
                    return words.format(least=f"{least:.4g}", greatest=f"{greatest:.4g}")
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
