"""The norms of gradients and weights, per module."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ..protocol import GradientNorm

_MODULES = 500


def gradient_norms(
    gradients: Iterable[tuple[str, Any]], weights: Mapping[str, Any]
) -> tuple[float | None, list[GradientNorm]]:
    """The norm of all gradients, and those of the modules with them; None if it is not finite.

    gradients and weights are tensors by the name of the parameter, "" if it is not known.
    """
    squares: dict[str, tuple[list[Any], list[Any]]] = {}
    every: list[Any] = []
    with torch.no_grad(), contextlib.suppress(Exception):
        for name, gradient in gradients:
            square = _square(gradient)
            every.append(square)
            if name in weights:
                of_gradients, of_weights = squares.setdefault(name.rpartition(".")[0], ([], []))
                of_gradients.append(square)
                of_weights.append(_square(weights[name]))
        norms = [
            GradientNorm(module=module, norm=_root(of_gradients), weights=_root(of_weights))
            for module, (of_gradients, of_weights) in list(squares.items())[:_MODULES]
        ]
        total = _root(every)
        finite = [each for each in norms if math.isfinite(each["norm"]) and math.isfinite(each["weights"])]
        return (total if math.isfinite(total) else None), finite
    return None, []


def _square(tensor: Any) -> Any:
    """The sum of squares of a tensor, still on its device."""
    tensor = tensor.detach()
    if tensor.is_sparse:
        tensor = tensor.coalesce().values()
    return torch.linalg.vector_norm(tensor, dtype=_precise(tensor.dtype)).square()


def _precise(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def _root(squares: list[Any]) -> float:
    return math.sqrt(sum(float(each) for each in squares))
