"""Operands of tensor arithmetic: outer broadcasts before a loss, and promotion to float64."""

from __future__ import annotations

import contextlib
import functools
import sys
from types import FrameType
from typing import Any

import torch

from ...protocol import Float64PromotionLine, OuterBroadcastLine
from .. import frames
from ..describe import describe
from ..session import Session

_OPERATORS = ("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__")
_KEPT, _NODES, _PLACES = 256, 64, 16
_ELEMENTWISE = (
    "AbsBackward", "AddBackward", "ClampBackward", "DivBackward", "ExpBackward", "LogBackward", "MulBackward",
    "NegBackward", "PowBackward", "SqrtBackward", "SubBackward",
)  # fmt: skip
_REDUCTIONS = ("MeanBackward0", "SumBackward0")


class ArithmeticWatcher:
    """Records suspicious arithmetic between tensors with gradients."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._broadcasts: dict[int, OuterBroadcastLine] = {}
        self._promoted: set[Any] = set()

    def install(self) -> None:
        """Watch the operators of tensors from now on."""
        for name in _OPERATORS:
            setattr(torch.Tensor, name, self._watched(getattr(torch.Tensor, name)))

    def _watched(self, original: Any) -> Any:
        @functools.wraps(original)
        def operator(tensor: Any, other: Any) -> Any:
            out = original(tensor, other)
            if isinstance(other, torch.Tensor) and isinstance(out, torch.Tensor) and out.requires_grad:
                if tensor.dim() != other.dim():
                    self._keep_broadcast(tensor, other, out, sys._getframe(1))
                if tensor.dtype is not other.dtype and out.dtype is torch.float64:
                    self._write_promotion(tensor, other, sys._getframe(1))
            return out

        return operator

    def _keep_broadcast(self, tensor: Any, other: Any, out: Any, caller: FrameType) -> None:
        """Keep an outer broadcast, until a loss shows whether it depends on it."""
        shorter, longer = sorted((tensor, other), key=lambda each: each.dim())
        outer = longer.shape == (*shorter.shape, 1) and out.shape != longer.shape
        if outer and out.grad_fn is not None and len(self._broadcasts) < _KEPT and self._session.watches():
            self._broadcasts[out.grad_fn._sequence_nr()] = OuterBroadcastLine(
                kind="outer_broadcast",
                left=describe(tensor),
                right=describe(other),
                result=list(out.shape),
                called_at=frames.site(caller),
            )

    def _write_promotion(self, tensor: Any, other: Any, caller: FrameType) -> None:
        """Record an operand promoting a floating-point tensor to float64."""
        floats = tensor.is_floating_point() and other.is_floating_point()
        key = (caller.f_code, caller.f_lasti)
        if not floats or key in self._promoted or len(self._promoted) >= _PLACES:
            return
        if frames.is_users(caller.f_code.co_filename) and self._session.watches():
            self._promoted.add(key)
            self._session.sink.write(
                Float64PromotionLine(
                    kind="float64_promotion",
                    left=describe(tensor),
                    right=describe(other),
                    called_at=frames.site(caller),
                )
            )

    def report(self, loss: torch.Tensor) -> None:
        """Write the outer broadcasts affecting a loss."""
        if not self._broadcasts:
            return
        with contextlib.suppress(Exception):  # older versions of torch expose less of their graph
            for number in _summed_operations(loss.grad_fn):
                line = self._broadcasts.pop(number, None)
                if line is not None:
                    self._session.sink.write(line)


def _summed_operations(node: Any) -> set[int]:
    """The elementwise operations with results in a sum or mean used as a term of a loss."""
    found: set[int] = set()
    waiting: list[tuple[Any, tuple[int, ...] | None]] = [(node, None)]
    seen = 0
    while waiting and seen < _NODES:
        node, size = waiting.pop()
        seen += 1
        if node is None:
            continue
        name, own = node.name(), tuple(node._input_metadata[0].shape)
        inner = [each for each, _ in node.next_functions]
        if size is None and not own:
            waiting += [(each, () if name in _REDUCTIONS else None) for each in inner]
        elif size is not None and size in ((), own) and name.rstrip("0123456789") in _ELEMENTWISE and own:
            found.add(node._sequence_nr())
            waiting += [(each, own) for each in inner]
    return found
