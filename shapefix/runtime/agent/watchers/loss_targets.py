"""What the targets of a loss hold: between which numbers they are, and how many of them are ignored."""

from __future__ import annotations

from typing import Any

import torch

_OF_CLASSES = ("cross_entropy", "nll_loss")
_OF_SHARES = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
_IGNORE_INDEX, _REDUCTION = 4, 6  # their positions among the arguments
_IGNORED, _COUNTED = -100, 50_000_000


def known(name: str, args: Any, kwargs: Any) -> dict[str, Any] | None:
    """The numbers in the targets of a loss by its name; None where they say nothing, or cannot be had.

    count, ignored, ignore_index and reduction for classes; least and greatest for both kinds.
    """
    target = args[1] if len(args) > 1 else kwargs.get("target")
    if not isinstance(target, torch.Tensor) or not 0 < target.numel() <= _COUNTED:
        return None
    try:
        with torch.no_grad():
            if name in _OF_CLASSES and not target.is_floating_point():
                return _classes(target, args, kwargs)
            if name in _OF_SHARES:
                return {"least": float(target.min()), "greatest": float(target.max())}
    except Exception:
        pass
    return None


def _classes(target: torch.Tensor, args: Any, kwargs: Any) -> dict[str, Any]:
    given = kwargs.get("ignore_index", args[_IGNORE_INDEX] if len(args) > _IGNORE_INDEX else _IGNORED)
    ignored = int((target == given).sum())
    return {
        "least": int(target.min()),
        "greatest": int(target.max()),
        "count": target.numel(),
        "ignored": ignored,
        "ignore_index": int(given),
        "reduction": kwargs.get("reduction", args[_REDUCTION] if len(args) > _REDUCTION else "mean"),
    }
