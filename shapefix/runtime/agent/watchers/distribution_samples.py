"""Samples of distributions, without a way for the gradient to the parameters of the distribution."""

from __future__ import annotations

import functools
import sys
from types import FrameType
from typing import Any

import torch
from torch.distributions import Distribution

from ...protocol import SampleCutLine, UserPlace
from .. import frames
from ..session import Session
from .loss_graphs import LossGraphs

_MOST, _NAMES = 8, 5
_SCORING = ("log_prob", "entropy", "rsample")


class DistributionSamples:
    """The first samples of one session, taken while gradients are recorded."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._taken: list[tuple[str, UserPlace | None, LossGraphs]] = []
        self._is_scored = self._done = False

    def install(self) -> None:
        """Watch all distributions of torch from now on."""
        for kind in _kinds(Distribution):
            if "sample" in vars(kind):
                kind.sample = self._sampling(kind.sample)
            for name in _SCORING:
                if name in vars(kind):
                    setattr(kind, name, self._scoring(vars(kind)[name]))

    def report(self, missing: list[Any], roots: list[Any], graphs: LossGraphs) -> None:
        """Write a line for a sample between the loss and parameters without a gradient, once."""
        if self._done or self._is_scored or not self._session.watches():
            return
        self._done = True
        lacking = {id(each) for each in missing} - graphs.parameters.keys()
        names = {id(each): name for root in roots for name, each in root.named_parameters()}
        for kind, called_at, above in self._taken:
            cut = [each for each in above.parameters if each in lacking]
            # A parameter with another way to the loss shows that the loss is of this step.
            if cut and graphs.parameters:
                found = [names.get(each, "a parameter") for each in cut]
                self._session.sink.write(
                    SampleCutLine(
                        kind="sample_cut",
                        distribution=kind,
                        called_at=called_at,
                        parameters=found[:_NAMES],
                        count=len(found),
                    )
                )
                return

    def _sampling(self, original: Any) -> Any:
        @functools.wraps(original)
        def sample(distribution: Any, *args: Any, **kwargs: Any) -> Any:
            if torch.is_grad_enabled() and self._session.watches() and not self._done:
                self._note(distribution, sys._getframe(1))
            scored = self._is_scored
            out = original(distribution, *args, **kwargs)
            self._is_scored = scored  # some distributions sample by `rsample` themselves
            return out

        return sample

    def _scoring(self, original: Any) -> Any:
        @functools.wraps(original)
        def score(*args: Any, **kwargs: Any) -> Any:
            self._is_scored = True
            return original(*args, **kwargs)

        return score

    def _note(self, distribution: Any, caller: FrameType) -> None:
        """Keep the parameters of a distribution with reparametrized samples."""
        if not getattr(distribution, "has_rsample", False) or len(self._taken) >= _MOST:
            return
        above = LossGraphs()
        for value in list(vars(distribution).values()):
            if isinstance(value, torch.Tensor) and value.grad_fn is not None:
                above.add(value)
        if above.parameters:
            self._taken.append((type(distribution).__name__, frames.site(caller), above))


def _kinds(kind: Any) -> list[Any]:
    return [kind, *(each for below in kind.__subclasses__() for each in _kinds(below))]
