"""Operands of plain arithmetic: those that meet crosswise on the way to a loss, and float64 that spreads."""

from __future__ import annotations

import contextlib
import functools
import sys
from types import FrameType
from typing import Any

import torch

from .. import frames
from ..describe import describe
from ..session import Session

_OPERATORS = ("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__")
_KEPT, _NODES, _PLACES = 256, 64, 16
_ONE_BY_ONE = (
    "AbsBackward", "AddBackward", "ClampBackward", "DivBackward", "ExpBackward", "LogBackward", "MulBackward",
    "NegBackward", "PowBackward", "SqrtBackward", "SubBackward",
)  # fmt: skip
_OF_ALL = ("MeanBackward0", "SumBackward0")


class Operands:
    """Watches the arithmetic of one session that has gradients."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._crossed: dict[int, dict[str, Any]] = {}
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
                    self._cross(tensor, other, out, sys._getframe(1))
                if tensor.dtype is not other.dtype and out.dtype is torch.float64:
                    self._promote(tensor, other, sys._getframe(1))
            return out

        return operator

    def _cross(self, tensor: Any, other: Any, out: Any, caller: FrameType) -> None:
        shorter, longer = sorted((tensor, other), key=lambda each: each.dim())
        crosswise = longer.shape == (*shorter.shape, 1) and out.shape != longer.shape
        if crosswise and out.grad_fn is not None and len(self._crossed) < _KEPT and self._session.watches():
            self._crossed[out.grad_fn._sequence_nr()] = {
                "left": describe(tensor),
                "right": describe(other),
                "result": list(out.shape),
                "called": frames.site(caller),
            }

    def _promote(self, tensor: Any, other: Any, caller: FrameType) -> None:
        """Where one of two tensors of real numbers makes the other float64, without anybody asking for it."""
        floats = tensor.is_floating_point() and other.is_floating_point()
        key = (caller.f_code, caller.f_lasti)
        if not floats or key in self._promoted or len(self._promoted) >= _PLACES:
            return
        if frames.is_users(caller.f_code.co_filename) and self._session.watches():
            self._promoted.add(key)
            self._session.observations.write(
                "promoted", left=describe(tensor), right=describe(other), called=frames.site(caller)
            )

    def tell(self, loss: torch.Tensor) -> None:
        """Write which operands met crosswise on the way to a loss, which sums up all of their pairs."""
        if not self._crossed:
            return
        with contextlib.suppress(Exception):  # older versions of torch tell less of their graph
            for number in _summed(loss.grad_fn):
                known = self._crossed.pop(number, None)
                if known is not None:
                    self._session.observations.write("crossed", **known)


def _summed(node: Any) -> set[int]:
    """The operations whose every element goes, one by one, into the sum or mean that is a term of a loss."""
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
            waiting += [(each, () if name in _OF_ALL else None) for each in inner]
        elif size is not None and size in ((), own) and name.rstrip("0123456789") in _ONE_BY_ONE and own:
            found.add(node._sequence_nr())
            waiting += [(each, own) for each in inner]
    return found
