"""Optimizer steps: gradients kept from the step before, weights updated by hand, and steps never taken."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import torch

from ...protocol import CarriedGradientsLine, EmptyStepLine, MissingStepLine, UserPlace
from ..gradient_norms import has_gradient
from ..session import Session
from ..sharding import is_readable
from .loss_graphs import LossGraphs
from .optimizer_parameters import OptimizerWatcher

_SAMPLED, _ELEMENTS = 16, 100_000


class CarriedGradients:
    """The gradients of each optimizer between its first and its second step."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept: dict[int, list[Any]] = {}
        self._backward_at: dict[int, UserPlace | None] = {}

    def stepped(self, optimizer: Any) -> None:
        """Note the parameters with a gradient at the first step of an optimizer."""
        if id(optimizer) in self._kept or self._session.sizes_only:
            return
        own = [each for group in optimizer.param_groups for each in group["params"]]
        self._kept[id(optimizer)] = list(itertools.islice(filter(has_gradient, own), _SAMPLED))

    def backward(self, site: UserPlace | None) -> None:
        """Drop the parameters with a cleared gradient, at the start of a backward call."""
        for key, parameters in self._kept.items():
            if parameters:
                self._kept[key] = parameters if all(map(has_gradient, parameters)) else []
                self._backward_at.setdefault(key, site)

    def second_step(self, optimizer: Any, site: UserPlace | None) -> None:
        """Write a line if no gradient was cleared since the first step."""
        parameters, backward_at = self._kept.get(id(optimizer)), self._backward_at.get(id(optimizer))
        if not parameters or backward_at is None:
            return
        self._kept[id(optimizer)] = []
        self._session.sink.write(
            CarriedGradientsLine(
                kind="carried_gradients",
                optimizer=type(optimizer).__name__,
                parameters=len(parameters),
                called_at=site,
                backward_at=backward_at,
            )
        )


class EmptySteps:
    """The optimizers with steps before backward, without gradients."""

    def __init__(self, session: Session, graphs: LossGraphs) -> None:
        self._session = session
        self._graphs = graphs
        self._first: set[int] = set()
        self._found: dict[int, EmptyStepLine] = {}
        self._backward_at: UserPlace | None = None

    def backward(self, site: UserPlace | None) -> None:
        """Note the place of a backward call."""
        self._backward_at = site

    def stepping(self, optimizer: Any, made: int, site: UserPlace | None) -> None:
        """Compare the gradients at a step with the losses before it; made counts the earlier steps."""
        key, session = id(optimizer), self._session
        if session.sizes_only or (made > 1 and key not in self._found):
            return
        own = [each for group in optimizer.param_groups for each in group["params"]]
        if any(each.grad is not None for each in own):
            self._first.discard(key)
            self._found.pop(key, None)
        elif made == 0:
            if not session.backward_calls:
                self._first.add(key)
        elif made == 1 and session.backward_calls and key in self._first:
            weights = {id(each) for each in self._graphs.weights()}
            if any(id(each) in weights for each in own):
                self._found[key] = EmptyStepLine(
                    kind="empty_step",
                    optimizer=type(optimizer).__name__,
                    called_at=site,
                    backward_at=self._backward_at,
                )

    def report(self) -> None:
        """Write a line for each such optimizer."""
        for line in self._found.values():
            self._session.sink.write(line)


class UntakenSteps:
    """The weights of the first losses without an optimizer step: updated by hand, or never."""

    def __init__(self, session: Session, optimizers: OptimizerWatcher) -> None:
        self._session = session
        self._optimizers = optimizers
        self._values: list[tuple[weakref.ref[Any], torch.Tensor]] = []
        self._place: UserPlace | None = None
        self._has_optimizer = False

    def optimizer_steps(self) -> None:
        """Note that an optimizer updates the weights; it may call backward itself."""
        self._has_optimizer = True
        self._values.clear()

    def backward(self, leaves: list[Any], site: UserPlace | None) -> bool:
        """Note the weights at a backward call; returns whether they changed since the one before."""
        if self._has_optimizer or self._session.sizes_only:
            return False
        changed = self._changed()
        self._place = self._place or site
        if changed or not self._values:
            readable = (each for each in leaves if is_readable(each))
            small = [each for each in readable if each.numel() <= _ELEMENTS][:_SAMPLED]
            self._values = [(weakref.ref(each), _on_cpu(each)) for each in small]
        return changed

    def report(self) -> None:
        """Write a line if an optimizer has got gradients, but made no step, and no weight changed."""
        session = self._session
        if session.steps or session.loop_truncated or not self._values or self._changed():
            return
        owned = {id(each): each for each in self._optimizers.parameters()}
        own = [tensor for tensor in (ref() for ref, _ in self._values) if id(tensor) in owned]
        if session.backward_calls < 2 or not any(map(has_gradient, own)):
            return
        session.sink.write(
            MissingStepLine(
                kind="missing_step",
                backward_calls=session.backward_calls,
                called_at=self._place,
                optimizers=self._optimizers.places(),
            )
        )

    def _changed(self) -> bool:
        known = [(ref(), value) for ref, value in self._values]
        return any(
            tensor is not None and is_readable(tensor) and not _equal(tensor, value)
            for tensor, value in known
        )


def _on_cpu(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", copy=True)


def _equal(tensor: torch.Tensor, value: torch.Tensor) -> bool:
    return tensor.shape != value.shape or bool(torch.equal(_on_cpu(tensor), value))
