"""Backward and optimizer steps: the loss, the gradients, and the end of a run."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ..protocol import (
    BackwardLine,
    GradientsLine,
    LossNotFiniteLine,
    OptimizerCoverageLine,
    OptimizerStepLine,
    UserPlace,
)
from . import frames
from .call_sites import CallSites
from .describe import describe, describe_call
from .exceptions import ExceptionRecorder
from .gradient_norms import GradientNumbers, gradient_numbers
from .module_calls import ModuleCalls
from .session import Session, steps_done
from .sharding import is_sharded
from .step_times import StepTimes
from .watchers import not_finite
from .watchers.kept_graphs import KeptGraphs
from .watchers.loss_graphs import LossGraphs
from .watchers.operands import ArithmeticWatcher
from .watchers.optimizer_parameters import OptimizerWatcher
from .watchers.untaken_steps import CarriedGradients, EmptySteps, UntakenSteps

_MOST_BACKWARDS, _NAMES, _WRITTEN, _PRODUCERS = 256, 50, 8, 8


class TrainingWatcher:
    """Watches backward and the steps of all optimizers of one session."""

    def __init__(
        self,
        session: Session,
        exceptions: ExceptionRecorder,
        modules: ModuleCalls,
        optimizers: OptimizerWatcher,
        call_sites: CallSites,
    ) -> None:
        self._session = session
        self._exceptions = exceptions
        self._modules = modules
        self._optimizers = optimizers
        self._arithmetic = ArithmeticWatcher(session)
        self._call_sites = call_sites
        self._steps: dict[int, int] = {}
        self._graphs = LossGraphs()
        self._kept = KeptGraphs(session)
        self._carried = CarriedGradients(session)
        self._untaken = UntakenSteps(session, optimizers)
        self._empty = EmptySteps(session, self._graphs)
        self._times = StepTimes(session)
        self.before_backward: Callable[[Any], None] = lambda loss: None

    def install(self) -> None:
        """Watch from now on."""
        self._arithmetic.install()
        self.watch_backward()
        before_end = self._session.before_end

        def at_end() -> None:
            before_end()
            if self._session.backward_calls and not self._steps:
                self._modules.trials.run([], self._graphs)
                self._untaken.report()
            self._empty.report()
            self._modules.evaluation.report()
            self._modules.modes.report()
            self._times.finish()

        self._session.before_end = at_end
        self._session.on_batch_requested = self._kept.batch_requested
        self._time_phases()
        self._modules.evaluation.install()
        register_optimizer_step_pre_hook(self._before)
        register_optimizer_step_post_hook(self._after)

    def _time_phases(self) -> None:
        """Measure the parts of training steps, too."""
        session, times, begin = self._session, self._times, self._session.on_phase

        def on_phase(phase: str | None) -> None:
            times.phase(phase)
            begin(phase)

        session.on_phase = on_phase
        session.on_loading, session.on_loaded = times.requested, times.loaded

    def watch_backward(self) -> None:
        """Watch backward, but not optimizers, from now on."""
        original, session, exceptions = torch.autograd.backward, self._session, self._exceptions

        def backward(*args: Any, **kwargs: Any) -> Any:
            if not session.watches():
                return original(*args, **kwargs)
            caller = sys._getframe(1)
            session.raise_if_stopped()
            exceptions.flush()
            loss = args[0] if args else kwargs.get("tensors")
            site = frames.site(caller)
            self._carried.backward(site)
            self._empty.backward(site)
            self._modules.modes.backward()
            self._modules.evaluation.backward(loss)
            self._kept.backward(loss)
            self._backward(loss, site)
            self.before_backward(loss)
            self._modules.sums.clear()
            call_site = self._call_sites.enter(caller)
            session.depth += 1
            session.on_phase("backward")
            try:
                out = original(*args, **kwargs)
            except BaseException as error:
                session.depth -= 1
                exceptions.record(error, "backward", caller, lambda: {"given": describe_call((loss,), {})})
                raise
            session.depth -= 1
            session.on_phase("loop")
            self._call_sites.returned(call_site)
            return out

        torch.autograd.backward = backward

    def _backward(self, loss: Any, site: UserPlace | None) -> None:
        session = self._session
        session.backward_calls += 1
        self._graphs.add(loss)
        if self._untaken.backward(self._graphs.weights(), site):
            self._updated_by_hand()
        self._modules.replicas.backward(self._graphs)
        if session.backward_calls > _MOST_BACKWARDS and not session.steps:
            session.stop(f"{_MOST_BACKWARDS} backward calls without an optimizer step")
        if session.backward_calls > max(_WRITTEN, 2 * session.wanted_steps) or not isinstance(
            loss, torch.Tensor
        ):
            return
        value = None
        if loss.numel() == 1 and not session.sizes_only:
            value = float(loss.detach())
        session.sink.write(
            BackwardLine(
                kind="backward",
                value=None if value is None or not math.isfinite(value) else value,
                text=None if value is None else repr(value),
                loss=describe(loss),
                connected=loss.requires_grad,
                producers=_producers(loss),
                called_at=site,
            )
        )
        self._arithmetic.report(loss)
        if value is not None and not math.isfinite(value):
            session.sink.write(
                LossNotFiniteLine(
                    kind="loss_not_finite",
                    value=repr(value),
                    module=self._modules.sums.first_not_finite(),
                    operation=not_finite.faulty_operation(loss),
                    called_at=site,
                )
            )

    def _updated_by_hand(self) -> None:
        """Count an update of the weights without an optimizer as a training step."""
        session = self._session
        ahead = 2 + session.extra_batches if session.active_passes else 0
        self._times.stepped(0)
        self._count_step("by hand")
        if session.steps >= session.wanted_steps + ahead:
            session.stop(steps_done(session.steps))

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        session = self._session
        if not session.watches():
            return
        session.raise_if_stopped()
        self._exceptions.flush()
        self._call_sites.enter(sys._getframe(1))
        self._untaken.optimizer_steps()
        made = self._steps.get(id(optimizer), 0)
        if not _has_closure(args, kwargs):
            site = frames.site(sys._getframe(1))
            self._empty.stepping(optimizer, made, site)
            if made == 1:
                self._carried.second_step(optimizer, site)
        # A loop with a prefetched batch still makes a step with it, and then ends.
        ahead = 2 + session.extra_batches if session.active_passes else 0
        if made >= session.wanted_steps + ahead:
            session.stop(steps_done(made))
        if made == 0 and session.overfits:
            roots = self._modules.roots
            names = {id(each): name for root in roots for name, each in root.named_parameters()}
            self._modules.overfitting.begin(optimizer, names)
        if made == 0 and not _has_closure(args, kwargs):
            start, own = time.monotonic(), session.own_seconds
            self._write_gradients(optimizer)
            # The trials in it have added their own time.
            session.own_seconds = max(own + time.monotonic() - start, session.own_seconds)
        session.on_phase("step")

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        session = self._session
        if not session.watches():
            return
        session.on_phase(None)
        self._times.stepped(id(optimizer))
        if self._steps.get(id(optimizer), 0) == 0 and _has_closure(args, kwargs):
            self._write_gradients(optimizer)  # the closure computed the gradients
        self._steps[id(optimizer)] = self._steps.get(id(optimizer), 0) + 1
        if not _has_closure(args, kwargs):
            self._carried.stepped(optimizer)
        self._count_step(type(optimizer).__name__)

    def _count_step(self, optimizer: str) -> None:
        session = self._session
        session.steps += 1
        if session.active_passes:
            session.trained_batches = session.pass_batches
            session.trained_loaders.add(session.pass_loader)
        if session.extra_batch is None or session.steps <= _WRITTEN:
            session.sink.write(
                OptimizerStepLine(
                    kind="optimizer_step",
                    number=session.steps,
                    optimizer=optimizer,
                    extra=session.extra_batch is not None,
                )
            )

    def _write_gradients(self, optimizer: Any) -> None:
        """Write the gradients at the first step of an optimizer, and its missing parameters."""
        sink = self._session.sink
        sink.write(self._gradients(optimizer))
        if self._session.backward_calls:
            uncovered = self._optimizers.uncovered(self._modules.roots)
            orphaned = self._optimizers.orphaned(optimizer)
            unregistered = self._optimizers.unregistered(self._modules.roots, self._graphs.parameters)
            if unregistered is not None:
                sink.write(unregistered)
            if uncovered is not None or orphaned is not None:
                sink.write(
                    OptimizerCoverageLine(
                        kind="optimizer_coverage",
                        uncovered=uncovered,
                        orphaned=orphaned,
                        created_at=self._optimizers.created_at(optimizer),
                    )
                )

        missing = [
            each
            for group in optimizer.param_groups
            for each in group["params"]
            if each.grad is None and each.requires_grad
        ]
        self._modules.samples.report(missing, self._modules.roots, self._graphs)
        self._modules.trials.run(missing, self._graphs)

    def _gradients(self, optimizer: Any) -> GradientsLine:
        """The parameters of an optimizer with and without a gradient at its first step."""
        names = self._modules.parameter_names()
        given = without = frozen = 0
        missing: list[str] = []
        gradients: list[tuple[str, Any]] = []
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                name = names.get(id(parameter), "")
                if not parameter.requires_grad:
                    frozen += 1
                elif parameter.grad is None:
                    without += 1
                    missing.append(name)
                else:
                    given += 1
                    gradients.append((name, parameter.grad))
        known = not self._session.sizes_only
        weights = {
            names[id(each)]: each
            for group in optimizer.param_groups
            for each in group["params"]
            if id(each) in names
        }
        numbers = gradient_numbers(gradients, weights) if known else GradientNumbers()
        if any(is_sharded(each) for group in optimizer.param_groups for each in group["params"]):
            # This rank has a part of each gradient only.
            numbers = GradientNumbers(not_finite=numbers.not_finite)
        return GradientsLine(
            kind="gradients",
            optimizer=type(optimizer).__name__,
            called_at=frames.site(sys._getframe(1)),
            backward_calls=self._session.backward_calls,
            with_gradient=given,
            without_gradient=without,
            frozen=frozen,
            missing=missing[:_NAMES],
            not_finite=numbers.not_finite[:_NAMES],
            all_zero=numbers.all_zero,
            trained_elsewhere=(numbers.all_zero or not given) and self._trains_elsewhere(optimizer),
            models=self._models_of(optimizer)[:_NAMES],
            norm=numbers.total,
            norms=numbers.norms,
        )

    def _models_of(self, optimizer: Any) -> list[str]:
        """The labels of the outermost modules with parameters of an optimizer."""
        own = {id(each) for group in optimizer.param_groups for each in group["params"]}
        roots = self._modules.roots
        holding = [root for root in roots if any(id(each) in own for each in root.parameters())]
        return list(dict.fromkeys(self._modules.label(root) for root in holding))

    def _trains_elsewhere(self, optimizer: Any) -> bool:
        """Whether a parameter outside of this optimizer got a gradient other than zero."""
        own = {id(each) for group in optimizer.param_groups for each in group["params"]}
        others = {id(each): each for root in self._modules.roots for each in root.parameters()}
        others |= {id(each): each for each in self._optimizers.parameters()}
        return any(
            each.grad is not None
            and (self._session.sizes_only or is_sharded(each.grad) or bool(each.grad.any()))
            for key, each in others.items()
            if key not in own
        )


def _has_closure(args: Any, kwargs: Any) -> bool:
    """Whether a step gets a closure to compute the gradients."""
    return callable(args[1] if len(args) > 1 else kwargs.get("closure"))  # the first is the optimizer


def _producers(loss: torch.Tensor) -> list[str]:
    """The operations leading to a loss, the last one first, up to one with several inputs."""
    names: list[str] = []
    node = loss.grad_fn
    while node is not None and len(names) < _PRODUCERS:
        names.append(node.name().rstrip("0123456789").removesuffix("Backward"))
        inputs = [each for each, _ in node.next_functions if each is not None]
        node = inputs[0] if len(inputs) == 1 else None
    return names
