"""Known values on the simulated GPU, such as those of masks and labels from the CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.weak import WeakTensorKeyDictionary

_AT_MOST, _FLOATS_AT_MOST = 1 << 20, 64
_RANDOM = torch.Tag.nondeterministic_seeded


class KnownValues:
    """The values of small tensors, mostly of integers, and of results computed from them."""

    def __init__(self) -> None:
        self._known: Any = WeakTensorKeyDictionary()

    def of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The values of a tensor, on the CPU, if they are known."""
        found: torch.Tensor | None = self._known.get(tensor)
        return found

    def assume(self, tensor: torch.Tensor, values: torch.Tensor) -> None:
        """Set the values of a tensor on the GPU."""
        self._known[tensor] = values

    def copied(self, source: torch.Tensor, to: Any) -> None:
        """Record the values of a tensor copied to the GPU."""
        if isinstance(to, FakeTensor) and _small(to):
            self._known[to] = source.detach().to(dtype=to.dtype, copy=True)

    def computed(self, func: Any, args: Any, kwargs: dict[str, Any], out: Any) -> None:
        """Repeat an operation with the values of its arguments, if all of them are known."""
        ours = [each for each in tree_leaves((args, kwargs)) if isinstance(each, FakeTensor)]
        results = [each for each in tree_leaves(out) if isinstance(each, FakeTensor)]
        writes = func._schema.is_mutable
        known = all(each in self._known for each in ours) and _RANDOM not in func.tags
        if not known or not all(map(_small, results)) or (not results and not writes):
            if writes:
                for each in (*ours, *results):
                    self._known.pop(each, None)
            return

        given = {id(each) for each in ours}

        def real(value: Any) -> Any:
            return self._known[value] if isinstance(value, FakeTensor) else value

        moved = {**kwargs, "device": "cpu"} if "device" in kwargs else kwargs
        with contextlib.suppress(Exception), torch.no_grad():
            values = tree_leaves(func(*tree_map(real, args), **tree_map(real, moved)))
            for each, value in zip(tree_leaves(out), values, strict=True):
                if isinstance(each, FakeTensor) and id(each) not in given:
                    self._known[each] = value


def _small(tensor: torch.Tensor) -> bool:
    return bool(tensor.numel() <= (_FLOATS_AT_MOST if tensor.is_floating_point() else _AT_MOST))


def item(tensor: torch.Tensor, known: torch.Tensor | None) -> Any:
    """The result of `.item()`: the value if it is known, otherwise zero."""
    if known is not None:
        return known.item()
    if tensor.dtype == torch.bool:
        return False
    return 0.0 if tensor.is_floating_point() else 0


def selected_count(mask: torch.Tensor, of: Callable[[torch.Tensor], torch.Tensor | None]) -> int:
    """The number of elements selected by a mask: all of them if its values are not known."""
    known = of(mask)
    return int(mask.numel() if known is None else torch.count_nonzero(known))
