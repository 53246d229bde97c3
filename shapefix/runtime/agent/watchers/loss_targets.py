"""The range of the targets of a loss, and how many of them are ignored."""

from __future__ import annotations

from typing import Any

import torch

from ...protocol import TargetFacts

_OF_CLASSES = ("cross_entropy", "nll_loss")
_OF_PROBABILITIES = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
_IGNORE_INDEX, _REDUCTION = 4, 6  # their positions among the arguments
_IGNORED, _COUNTED = -100, 50_000_000


def target_facts(name: str, args: Any, kwargs: Any) -> TargetFacts | None:
    """The facts about the targets of a loss, by its name; None for other losses and unreadable targets."""
    target = args[1] if len(args) > 1 else kwargs.get("target")
    if not isinstance(target, torch.Tensor) or not 0 < target.numel() <= _COUNTED:
        return None
    try:
        with torch.no_grad():
            if name in _OF_CLASSES and not target.is_floating_point():
                return _classes(target, args, kwargs)
            if name in _OF_PROBABILITIES:
                return TargetFacts(
                    least=float(target.min()),
                    greatest=float(target.max()),
                    count=None,
                    ignored=None,
                    ignore_index=None,
                    reduction=None,
                )
    except Exception:
        pass
    return None


def _classes(target: torch.Tensor, args: Any, kwargs: Any) -> TargetFacts:
    given = kwargs.get("ignore_index", args[_IGNORE_INDEX] if len(args) > _IGNORE_INDEX else _IGNORED)
    ignored = int((target == given).sum())
    return TargetFacts(
        least=int(target.min()),
        greatest=int(target.max()),
        count=target.numel(),
        ignored=ignored,
        ignore_index=int(given),
        reduction=kwargs.get("reduction", args[_REDUCTION] if len(args) > _REDUCTION else "mean"),
    )
