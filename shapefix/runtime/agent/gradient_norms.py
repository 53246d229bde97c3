"""The norms of gradients and weights, per module, and the gradients of zeros or infinities."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ..protocol import GradientNorm
from .sharding import is_readable, local_part

_MODULES = 500


@dataclass
class GradientNumbers:
    """Norms of the gradients of a step, and the special ones among them.

    total is the norm of all gradients, None if it is not finite; norms are those of the modules.
    not_finite names the gradients with an infinity or a NaN. all_zero is true where there are gradients, of
    zeros only; sparse gradients are taken for others.
    """

    total: float | None = None
    norms: list[GradientNorm] = field(default_factory=list)
    not_finite: list[str] = field(default_factory=list)
    all_zero: bool = False


def gradient_numbers(gradients: Sequence[tuple[str, Any]], weights: Mapping[str, Any]) -> GradientNumbers:
    """The norms of gradients, with those of their weights.

    gradients and weights are tensors by the name of the parameter, "" if it is not known. Each tensor is read
    once: a finite norm has finite terms, and one other than zero a term other than zero.
    """
    found = GradientNumbers()
    squares: dict[str, tuple[list[float], list[float]]] = {}
    every: list[float] = []
    zeros = 0
    with torch.no_grad(), contextlib.suppress(Exception):
        for name, whole in gradients:
            gradient = local_part(whole)
            norm = _norm(gradient)
            every.append(norm * norm)
            if not gradient.is_sparse:
                zeros += norm == 0 and not bool(gradient.any())
                if not math.isfinite(norm) and not bool(torch.isfinite(gradient).all()):
                    found.not_finite.append(name)
            if name in weights:
                of_gradients, of_weights = squares.setdefault(name.rpartition(".")[0], ([], []))
                of_gradients.append(norm * norm)
                of_weights.append(_norm(local_part(weights[name])) ** 2)
        found.all_zero = 0 < zeros == len(gradients)
        norms = [
            GradientNorm(module=module, norm=math.sqrt(sum(of_gradients)), weights=math.sqrt(sum(of_weights)))
            for module, (of_gradients, of_weights) in list(squares.items())[:_MODULES]
        ]
        total = math.sqrt(sum(every))
        found.total = total if math.isfinite(total) else None
        found.norms = [
            each for each in norms if math.isfinite(each["norm"]) and math.isfinite(each["weights"])
        ]
    return found


def has_gradient(parameter: Any) -> bool:
    """Whether a parameter has a dense gradient with a number other than zero."""
    gradient = getattr(parameter, "grad", None)
    if gradient is None or gradient.is_sparse or not is_readable(gradient):
        return False
    # The norm is faster than `any`; squares of tiny numbers may be 0.
    return _norm(gradient) != 0 or bool(gradient.detach().any())


def _norm(tensor: Any) -> float:
    """The norm of all numbers of a tensor, in float32 at least."""
    tensor = tensor.detach()
    if tensor.is_sparse:
        tensor = tensor.coalesce().values()
    precise = torch.promote_types(tensor.dtype, torch.float32)
    return float(torch.linalg.vector_norm(tensor, dtype=precise))
