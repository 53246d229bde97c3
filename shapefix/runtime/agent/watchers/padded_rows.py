"""Rows padded by `pad_sequence`, and their padding among the targets of a loss."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.utils import rnn

from ...protocol import PaddedTargets, UserPlace
from .. import frames
from ..session import Session

_KEPT, _MOST = 8, 1_000_000
_PARAMETERS = ("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction")
_OF_CLASSES = ("cross_entropy", "nll_loss")


@dataclass(frozen=True)
class _Padded:
    """A result of `pad_sequence`: its first values, its padding and its place."""

    values: torch.Tensor
    mask: torch.Tensor
    value: float
    made_at: UserPlace | None


class PaddedRows:
    """The last padded rows of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._last: deque[_Padded] = deque(maxlen=_KEPT)

    def install(self) -> None:
        """Watch `pad_sequence` from now on."""
        original = rnn.pad_sequence
        signature = inspect.signature(original)

        @functools.wraps(original)
        def pad_sequence(*args: Any, **kwargs: Any) -> Any:
            out = original(*args, **kwargs)
            if self._session.watches() and not self._session.sizes_only:
                # Rows of another sort are padded by torch, too.
                with contextlib.suppress(Exception):
                    self._note(out, signature.bind(*args, **kwargs).arguments, sys._getframe(1))
            return out

        rnn.pad_sequence = pad_sequence

    def _note(self, out: torch.Tensor, given: dict[str, Any], caller: Any) -> None:
        rows = list(given["sequences"])
        # Only rows of class ids, padded at the end, with something to pad.
        if out.dim() != 2 or out.is_floating_point() or not 0 < out.numel() <= _MOST:
            return
        if given.get("padding_side", "right") != "right" or len({len(row) for row in rows}) < 2:
            return
        lengths = torch.tensor([len(row) for row in rows])
        mask = torch.arange(int(lengths.max()))[None, :] >= lengths[:, None]
        if not given.get("batch_first", False):
            mask = mask.T
        self._last.append(
            _Padded(
                out.detach().cpu().clone(), mask, float(given.get("padding_value", 0.0)), frames.site(caller)
            )
        )

    def among(self, name: str, args: Any, kwargs: Any) -> PaddedTargets | None:
        """The padding among the targets of a mean or a sum over all classes; None without any."""
        if name not in _OF_CLASSES or not self._last or not torch.is_grad_enabled():
            return None
        given = kwargs | {key: value for key, value in zip(_PARAMETERS, args)}  # noqa: B905, C416
        target = given.get("target")
        if not isinstance(target, torch.Tensor) or not 0 < target.numel() <= _MOST:
            return None
        if given.get("weight") is not None or given.get("reduction", "mean") == "none":
            return None
        try:
            flat = target.detach().cpu().reshape(-1)
            for each in reversed(self._last):
                if each.value == given.get("ignore_index", -100):
                    continue
                for values, mask in _parts(each):
                    if values.numel() == flat.numel() and bool(mask.any()) and torch.equal(values, flat):
                        return PaddedTargets(
                            count=int(mask.sum()), total=flat.numel(), value=each.value, made_at=each.made_at
                        )
        except Exception:  # a tensor of another sort
            return None
        return None


def _parts(padded: _Padded) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The rows, and the rows without their first or last id, in both orders, flat."""
    for dim in (0, 1):
        size = padded.values.shape[dim]
        for start, length in ((0, size), (1, size - 1), (0, size - 1)):
            values, mask = (each.narrow(dim, start, length) for each in (padded.values, padded.mask))
            yield values.reshape(-1), mask.reshape(-1)
            yield values.T.reshape(-1), mask.T.reshape(-1)
