"""Evaluation passes over a loader with a graph recorded for no backward call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from ...protocol import RecordedEvaluationLine, UserPlace
from .. import frames
from ..session import Session
from .loss_graphs import graph_nodes
from .modes import Modes

_CALLS, _BACKWARDS = 8, 64


@dataclass
class EvaluationCall:
    """A call of a model in evaluation mode with a recorded graph."""

    module: Any
    called_at: UserPlace
    pass_number: int
    nodes: frozenset[int] = field(repr=False)


class RecordedEvaluation:
    """The model calls in evaluation mode of one session, until a backward call uses their graph."""

    def __init__(self, session: Session, modes: Modes) -> None:
        self._session = session
        self._modes = modes
        self._calls: list[EvaluationCall] = []
        self._sites: set[str] = set()
        self._backwards = 0
        self._differentiates = False

    def install(self) -> None:
        """Watch torch.autograd.grad from now on, since it needs the graph of an evaluation."""
        original = torch.autograd.grad

        def grad(*args: Any, **kwargs: Any) -> Any:
            self._differentiates = True
            return original(*args, **kwargs)

        torch.autograd.grad = grad

    def called(self, module: Any, args: Any, kwargs: Any, out: Any, caller: FrameType) -> None:
        """Note the call of an outermost module."""
        session = self._session
        if module.training or not session.active_passes or len(self._calls) >= _CALLS:
            return
        site = frames.site(caller)
        if site is None or not frames.is_users(caller.f_code.co_filename) or str(site) in self._sites:
            return
        if any(each.requires_grad for each in tensors([*args, *kwargs.values()])):
            return
        nodes = [each.grad_fn for each in tensors(out) if each.grad_fn is not None]
        if nodes:
            self._sites.add(str(site))
            known = frozenset(node._sequence_nr() for node in nodes)
            self._calls.append(EvaluationCall(module, site, session.pass_number, known))

    def backward(self, loss: Any) -> None:
        """Drop the calls in the pass of a backward call, and those in the graph of its loss."""
        session = self._session
        if not self._calls:
            return
        self._backwards += 1
        if self._backwards > _BACKWARDS or not isinstance(loss, torch.Tensor):
            self._calls.clear()
            return
        used = {node._sequence_nr() for node in graph_nodes(loss.grad_fn)}
        for each in self._calls:
            if each.nodes & used:
                self._modes.trained_in_evaluation(each.module, each.called_at)
        same_pass = session.pass_number if session.active_passes else None
        self._calls = [
            each for each in self._calls if not each.nodes & used and each.pass_number != same_pass
        ]

    def report(self) -> None:
        """Write a line for each call with a graph unused by backward calls."""
        if self._differentiates or not self._session.backward_calls:
            return
        for each in self._calls:
            model = type(each.module).__name__
            self._session.sink.write(
                RecordedEvaluationLine(kind="recorded_evaluation", model=model, called_at=each.called_at)
            )


def tensors(value: Any, depth: int = 3) -> Iterator[Any]:
    """The tensors in a value and its containers."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, (list, tuple, Mapping)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from tensors(each, depth - 1)
    elif depth and hasattr(value, "__dict__"):
        yield from tensors(list(vars(value).values()), depth - 1)
