"""Training on one batch: which parameters change, and whether the model gets the same input at each step."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch

from ..protocol import OverfitLine
from .session import Session

_LARGE = 1 << 30
_NAMES = 50


class Overfitting:
    """The parameters before the first step of the first optimizer, and the inputs of the models."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._before: dict[int, tuple[str, Any, Any]] = {}
        self._lr: float | None = None
        self._inputs: dict[int, tuple[float, ...]] = {}
        self._same = True
        self._done = False

    def begin(self, optimizer: Any, names: Mapping[int, str]) -> None:
        """Keep the values of the parameters of an optimizer before its first step."""
        parameters = [
            each for group in optimizer.param_groups for each in group["params"] if each.requires_grad
        ]
        self._lr = float(optimizer.param_groups[0].get("lr", 0.0)) if self._lr is None else self._lr
        if sum(each.numel() * each.element_size() for each in parameters) <= _LARGE:
            for each in parameters:
                value = each.detach().clone()
                self._before.setdefault(id(each), (names.get(id(each), ""), each, value))

    def called(self, model: Any, args: Any, kwargs: Any) -> None:
        """Compare the input of a model with that of its last training call."""
        if not self._session.overfits or next(model.parameters(), None) is None:
            return
        sums = tuple(
            float(each.detach().double().sum())
            for each in (*args, *kwargs.values())
            if isinstance(each, torch.Tensor) and each.layout is torch.strided
        )
        self._same = self._same and self._inputs.setdefault(id(model), sums) == sums

    def report(self) -> None:
        """Write the parameters that did not change, once, at the end of the run."""
        if self._done or not self._session.overfits or not self._session.steps:
            return
        self._done = True
        unchanged = [
            name for name, parameter, value in self._before.values() if torch.equal(parameter.detach(), value)
        ]
        self._session.sink.write(
            OverfitLine(
                kind="overfit",
                steps=self._session.steps,
                same_input=self._same and bool(self._inputs),
                learning_rate=self._lr,
                parameters=len(self._before),
                unchanged=unchanged[:_NAMES],
            )
        )


def same_batch(batch: Any) -> Any:
    """A copy of a batch; the batch itself if it cannot be copied."""
    try:
        return copy.deepcopy(batch)
    except Exception:
        return batch
