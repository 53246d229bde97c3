"""Phases of training steps on a device: forward, backward and step, and the purpose of its storages."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils._pytree import tree_leaves

from ...protocol import StepMemoryLine
from ..describe import describe_call
from ..session import Session
from .storages import ACTIVATIONS, GRADIENTS, INPUTS, PARAMETERS, STATE, TEMPORARY, Storages

_WRITTEN = 64


class StepPhases:
    """Sets the phases of the storages of one session, and writes the memory peaks of each training step.

    prepare is called with each outermost module before its first call with gradients; context gives a context
    manager for such calls.
    """

    def __init__(
        self,
        session: Session,
        storages: Storages,
        prepare: Callable[[nn.Module], None] = lambda module: None,
        context: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext,
    ) -> None:
        self._session, self._storages = session, storages
        self._prepare, self._context = prepare, context
        self._running = False
        self._roots: list[Any] = []  # weak references: a module need not have a hash
        self._inputs: Any = None
        self._calls = 0
        self._steps = 0

    def install(self) -> None:
        """Watch from now on."""
        call, phases, session = nn.Module.__call__, self, self._session

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            if phases._running or not session.watches():
                return call(self, *args, **kwargs)
            with phases._outermost(self, args, kwargs):
                return call(self, *args, **kwargs)

        backward = torch.autograd.backward

        def watched(*args: Any, **kwargs: Any) -> Any:
            if phases._running or not session.watches():
                return backward(*args, **kwargs)
            with phases._during("backward", TEMPORARY):
                return backward(*args, **kwargs)

        nn.Module.__call__ = __call__
        torch.autograd.backward = watched
        register_optimizer_step_pre_hook(self._before)
        register_optimizer_step_post_hook(self._after)

    @contextlib.contextmanager
    def _outermost(self, module: Any, args: Any, kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            with self._during("evaluation", TEMPORARY):
                yield
            return
        if all(module is not each() for each in self._roots):
            self._roots.append(weakref.ref(module))
            self._prepare(module)
            self._mark_parameters(module)
        if any(True for _ in module.parameters()):
            self._calls += 1
            self._inputs = self._inputs or describe_call(args, kwargs)
        storages = self._storages
        storages.begin("forward", ACTIVATIONS)
        self._running = True
        try:
            with self._context():
                yield
        finally:
            self._running = False

    @contextlib.contextmanager
    def _during(self, phase: str, kind: str) -> Any:
        """Run a phase; the loop of the script goes on afterwards."""
        before = self._storages.phase, self._storages.kind
        self._storages.begin(phase, kind)
        self._running = True
        try:
            yield
        finally:
            self._running = False
            self._storages.begin(*(before if phase == "evaluation" else ("loop", INPUTS)))

    def _mark_parameters(self, module: nn.Module) -> None:
        storages = self._storages
        storages.mark([*module.parameters(), *module.buffers()], PARAMETERS)
        for parameter in module.parameters():
            if parameter.requires_grad and parameter.is_leaf:
                parameter.register_post_accumulate_grad_hook(
                    lambda each: storages.mark([each.grad], GRADIENTS)
                )

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._session.watches():
            parameters = [each for group in optimizer.param_groups for each in group["params"]]
            self._storages.mark(parameters, PARAMETERS)
            self._storages.mark([each.grad for each in parameters], GRADIENTS)
            self._storages.begin("step", TEMPORARY)

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self._session.watches():
            return
        storages = self._storages
        for state in optimizer.state.values():
            storages.mark((each for each in tree_leaves(state) if isinstance(each, torch.Tensor)), STATE)
        self._steps += 1
        if self._steps <= _WRITTEN:
            self._session.sink.write(
                StepMemoryLine(
                    kind="step_memory",
                    step=self._steps,
                    peaks={name: peak.observation() for name, peak in storages.peaks.items()},
                    totals=storages.totals,
                    reserved=storages.allocator.peak_reserved,
                    calls=self._calls,
                    input=self._inputs,
                )
            )
        self._calls, self._inputs = 0, None
        storages.reset_peaks()
        storages.begin("loop", INPUTS)
