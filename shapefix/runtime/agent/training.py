"""Backward and optimizer steps: the loss, which parameters got a gradient, and when enough is known."""

from __future__ import annotations

import math
import sys
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from . import describe, frames
from .call_sites import Visits
from .failures import Failures
from .module_calls import Calls
from .session import Session
from .watchers import not_finite
from .watchers.operands import Operands
from .watchers.optimizer_parameters import Held

_BACKWARDS, _NAMES, _TOLD, _WAY = 256, 50, 8, 8


class Training:
    """Watches backward and the steps of all optimizers of one session."""

    def __init__(
        self, session: Session, failures: Failures, calls: Calls, held: Held, visits: Visits
    ) -> None:
        self._session = session
        self._failures = failures
        self._calls = calls
        self._held = held
        self._operands = Operands(session)
        self._visits = visits
        self._steps: dict[int, int] = {}

    def install(self) -> None:
        """Watch from now on."""
        self._operands.install()
        self.watch_backward()
        register_optimizer_step_pre_hook(self._before)
        register_optimizer_step_post_hook(self._after)

    def watch_backward(self) -> None:
        """Watch backward, and no optimizer, from now on."""
        original, session, failures = torch.autograd.backward, self._session, self._failures

        def backward(*args: Any, **kwargs: Any) -> Any:
            if not session.watches():
                return original(*args, **kwargs)
            caller = sys._getframe(1)
            session.go_on()
            failures.flush()
            loss = args[0] if args else kwargs.get("tensors")
            self._backward(loss, frames.site(caller))
            self._calls.sums.clear()
            visit = self._visits.come(caller)
            session.depth += 1
            session.phase("backward")
            try:
                out = original(*args, **kwargs)
            except BaseException as error:
                session.depth -= 1
                failures.note(error, "backward", caller, given=lambda: describe.call((loss,), {}))
                raise
            session.depth -= 1
            session.phase("loop")
            self._visits.passed(visit)
            return out

        torch.autograd.backward = backward

    def _backward(self, loss: Any, site: frames.Place | None) -> None:
        session = self._session
        session.backwards += 1
        if session.backwards > _BACKWARDS and not session.steps:
            session.stop(f"{_BACKWARDS} times backward, and no optimizer has made a step")
        if session.backwards > _TOLD or not isinstance(loss, torch.Tensor):
            return
        value = None
        if loss.numel() == 1 and not session.sizes_only:
            value = float(loss.detach())
        session.observations.write(
            "backward",
            value=None if value is None or not math.isfinite(value) else value,
            text=None if value is None else repr(value),
            loss=describe.describe(loss),
            connected=loss.requires_grad,
            made=_made_of(loss),
            called=site,
        )
        self._operands.tell(loss)
        if value is not None and not math.isfinite(value):
            session.observations.write(
                "not finite",
                value=repr(value),
                module=self._calls.sums.first(),
                operation=not_finite.operation(loss),
                called=site,
            )

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        session = self._session
        if not session.watches():
            return
        session.go_on()
        self._failures.flush()
        self._visits.come(sys._getframe(1))
        made = self._steps.get(id(optimizer), 0)
        # A loader that has yielded one batch ahead still makes a step with it, and then ends its loop.
        if made >= session.wanted_steps + (2 if session.active_passes else 0):
            session.stop(f"{_counted(made)} made")
        if made == 0 and not _closure(args, kwargs):
            self._tell(optimizer)
        session.phase("step")

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        session = self._session
        if not session.watches():
            return
        session.phase(None)
        if self._steps.get(id(optimizer), 0) == 0 and _closure(args, kwargs):
            self._tell(optimizer)  # the gradients came with the closure
        session.steps += 1
        self._steps[id(optimizer)] = self._steps.get(id(optimizer), 0) + 1
        if session.steps <= _TOLD:
            session.observations.write("step", number=session.steps, optimizer=type(optimizer).__name__)

    def _tell(self, optimizer: Any) -> None:
        """Write what is known of the gradients at the first step of an optimizer."""
        observations = self._session.observations
        observations.write("gradients", **self._gradients(optimizer))
        if self._session.backwards:
            missed = self._held.missed(self._calls.roots)
            orphans = self._held.orphans(optimizer)
            if missed is not None or orphans is not None:
                observations.write("held", missed=missed, orphans=orphans, made=self._held.made(optimizer))

    def _gradients(self, optimizer: Any) -> dict[str, Any]:
        """Which parameters of an optimizer have a gradient at its first step."""
        names = {
            id(parameter): name for root in self._calls.roots for name, parameter in root.named_parameters()
        }
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
        zero = given > 0 and not self._session.sizes_only and _all_zero(gradients)
        return {
            "optimizer": type(optimizer).__name__,
            "made": self._held.made(optimizer),
            "called": frames.site(sys._getframe(1)),
            "backwards": self._session.backwards,
            "given": given,
            "without": without,
            "frozen": frozen,
            "missing": missing[:_NAMES],
            "not_finite": _not_finite(gradients)[:_NAMES],
            "zero": zero,
            "elsewhere": (zero or not given) and self._elsewhere(optimizer),
        }

    def _elsewhere(self, optimizer: Any) -> bool:
        """Whether a parameter got a gradient that is not zero, and is not this optimizer's."""
        own = {id(each) for group in optimizer.param_groups for each in group["params"]}
        others = {id(each): each for root in self._calls.roots for each in root.parameters()}
        others |= {id(each): each for each in self._held.parameters()}
        return any(
            each.grad is not None and (self._session.sizes_only or bool(each.grad.any()))
            for key, each in others.items()
            if key not in own
        )


def _closure(args: Any, kwargs: Any) -> bool:
    """Whether a step computes its gradients itself, by calling a function."""
    return callable(args[1] if len(args) > 1 else kwargs.get("closure"))  # the first is the optimizer


def _not_finite(gradients: list[tuple[str, Any]]) -> list[str]:
    """The names of the gradients with an infinity or a NaN."""
    dense = [(name, each.detach()) for name, each in gradients if not each.is_sparse]
    # One number for each is read first: a sum is finite where all of it is, but for what overflows.
    suspects = [(name, each) for name, each in dense if not math.isfinite(float(each.sum()))]
    return [name for name, each in suspects if not bool(torch.isfinite(each).all())]


def _all_zero(gradients: list[tuple[str, Any]]) -> bool:
    return all(not each.is_sparse and not bool(each.detach().any()) for _, each in gradients)


def _made_of(loss: torch.Tensor) -> list[str]:
    """The operations that a loss was made by, from its own backwards, as long as there is one way only."""
    names: list[str] = []
    node = loss.grad_fn
    while node is not None and len(names) < _WAY:
        names.append(node.name().rstrip("0123456789").removesuffix("Backward"))
        ways = [each for each, _ in node.next_functions if each is not None]
        node = ways[0] if len(ways) == 1 else None
    return names


def _counted(steps: int) -> str:
    return f"{steps} training step{'' if steps == 1 else 's'}"
