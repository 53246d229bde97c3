"""The time of training steps: loading, forward, backward, optimizer, and the rest."""

from __future__ import annotations

import time
from collections import Counter

import torch

from ..protocol import StepTimesLine
from .session import Session

_WRITTEN = 8
_PARTS = {"forward": "forward", "backward": "backward", "step": "optimizer"}


class StepTimes:
    """Measures the steps of one session.

    A step ends where the next batch is requested, or where an optimizer steps again without a batch in
    between. Work before the first forward, such as a look at a batch, is not part of one. The probe's own
    trials are left out, and so is the step of a shorter last batch.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._part = "other"
        self._parts: Counter[str] = Counter()
        self._rows = 0
        self._is_short = False
        self._at_step: tuple[Counter[str], int] = Counter(), 0
        self._stepped: set[int] = set()
        self._number = 0
        self._mark()

    def phase(self, phase: str | None) -> None:
        """Begin a phase of the session: forward, loop, backward, step or None."""
        self._switch(_PARTS.get(phase or "", "other"))
        if phase == "forward" and not self._number and not self._parts.keys() & {"forward", "data"}:
            self._parts.clear()

    def requested(self) -> None:
        """Begin to load a batch."""
        self._switch("other")
        if self._stepped:
            self._write(self._parts, self._rows)
            self._parts, self._rows = Counter(), 0
        elif not self._parts.keys() & {"forward", "backward"}:
            self._parts, self._rows = Counter(), 0
        self._part = "data"

    def loaded(self, rows: int | None) -> None:
        """End to load a batch with some samples, if they are known."""
        self._switch("other")
        self._rows += rows or 0
        self._is_short = self._session.extra_batch == "last"

    def stepped(self, optimizer: int) -> None:
        """Note the end of a step of an optimizer, by its id."""
        self._switch("other")
        if optimizer in self._stepped:
            parts, rows = self._at_step
            self._write(parts, rows)
            self._parts.subtract(parts)
            self._rows -= rows
        self._stepped.add(optimizer)
        self._at_step = Counter(self._parts), self._rows

    def finish(self) -> None:
        """Write the last step."""
        if self._stepped:
            self._write(*self._at_step)

    def _write(self, parts: Counter[str], rows: int) -> None:
        self._stepped.clear()
        if self._is_short or self._number == _WRITTEN or self._session.sizes_only:
            return
        self._number += 1
        # The start of a first step without a batch and a module is not known.
        if self._number == 1 and not parts.keys() & {"forward", "data"}:
            return
        self._session.sink.write(
            StepTimesLine(
                kind="step_times",
                step=self._number,
                seconds=round(sum(parts.values()), 6),
                data=round(parts["data"], 6),
                forward=round(parts["forward"], 6),
                backward=round(parts["backward"], 6),
                optimizer=round(parts["optimizer"], 6),
                rows=rows or None,
            )
        )

    def _switch(self, part: str) -> None:
        """Add the time since the last switch to the running part, and begin another one."""
        if self._number < _WRITTEN and not self._session.sizes_only and torch.cuda.is_initialized():
            torch.cuda.synchronize()
        before, own = self._since, self._own
        self._mark()
        self._parts[self._part] += max(self._since - before - (self._own - own), 0.0)  # type: ignore[assignment]
        self._part = part

    def _mark(self) -> None:
        self._since, self._own = time.perf_counter(), self._session.own_seconds
