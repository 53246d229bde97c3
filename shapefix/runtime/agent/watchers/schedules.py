"""Learning rate schedules in epochs with a step for each batch, and the other way round."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any, Literal

from torch.optim import lr_scheduler

from ...protocol import ScheduleUnitLine
from .. import frames
from ..session import Session

_NOTHING = 1e-6
"""Share of a learning rate without any effect."""
_FEW = 3


class Schedules:
    """The first steps of each scheduler of one session, taken by the user's own code."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._seen: set[int] = set()
        self._kept: list[Any] = []

    def install(self) -> None:
        """Watch the schedulers of torch from now on."""
        # Its name before torch 2.0.
        base = getattr(lr_scheduler, "LRScheduler", None) or lr_scheduler._LRScheduler
        original = base.step

        @functools.wraps(original)
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1)
            if self._session.steps and self._session.watches() and frames.is_users(caller.f_code.co_filename):
                self._note(scheduler, caller, bool(args or kwargs))
            return original(scheduler, *args, **kwargs)

        base.step = step

    def _note(self, scheduler: Any, caller: FrameType, has_epoch: bool) -> None:
        """Write a line at the first step of a scheduler, if its settings are in another unit."""
        if id(scheduler) in self._seen:
            return
        self._seen.add(id(scheduler))
        self._kept.append(scheduler)  # keeps it alive, so that no other one gets its id
        session, batches = self._session, self._session.trained_batches
        if has_epoch or batches is None or batches < _FEW:
            return
        # Steps in an epoch: fewer than batches, if gradients are accumulated.
        steps = batches * session.steps // max(session.backward_calls, session.steps)
        in_pass = session.active_passes > 0
        found = _in_epochs(scheduler, steps, caller) if in_pass else _in_batches(scheduler, steps)
        if found is not None:
            unit: Literal["epochs", "batches"] = "epochs" if in_pass else "batches"
            session.sink.write(
                ScheduleUnitLine(
                    kind="schedule_unit",
                    scheduler=type(scheduler).__name__,
                    setting=found[0],
                    value=found[1],
                    unit=unit,
                    batches=batches,
                    called_at=frames.site(caller),
                )
            )


def _in_epochs(scheduler: Any, steps: int, caller: FrameType) -> tuple[str, float] | None:
    """The setting of a schedule in epochs: within one, the learning rate is gone or rises again."""
    kind = type(scheduler)
    if kind is lr_scheduler.ExponentialLR and 0 < scheduler.gamma < 1:
        return ("gamma", scheduler.gamma) if scheduler.gamma**steps < _NOTHING else None
    if kind is lr_scheduler.StepLR and 0 < scheduler.gamma < 1:
        is_gone = scheduler.gamma ** (steps // scheduler.step_size) < _NOTHING
        return ("step_size", scheduler.step_size) if is_gone else None
    if kind is lr_scheduler.CosineAnnealingLR and steps >= _FEW:
        is_count = any(number == scheduler.T_max for number in _numbers_of_epochs(caller))
        return ("T_max", scheduler.T_max) if is_count else None
    return None


def _in_batches(scheduler: Any, steps: int) -> tuple[str, float] | None:
    """The setting of a schedule in batches: a whole number of epochs."""
    if type(scheduler) is not lr_scheduler.OneCycleLR or steps < _FEW:
        return None
    total = scheduler.total_steps
    return ("total_steps", total) if total >= 2 * steps and total % steps == 0 else None


def _numbers_of_epochs(caller: FrameType) -> Iterator[int]:
    """The numbers in the user's variables and options with names such as `epochs`."""
    for frame in frames.users(caller):
        known = {**frame.f_globals, **frame.f_locals}
        for value in list(known.values()):
            if isinstance(value, argparse.Namespace):
                known.update(vars(value))
        for name, value in known.items():
            if "epochs" in str(name).lower() and type(value) is int:
                yield value
