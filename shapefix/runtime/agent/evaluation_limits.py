"""The end of evaluation after the training steps: at once, after some seconds, or by itself."""

from __future__ import annotations

import copy
import functools
import sys
import time
from collections import Counter
from types import ModuleType
from typing import Any

from . import frames
from .session import Session

SECONDS = 2.0
_CALLS = 2  # of one model with one batch, as in an evaluation with and without noise
_GENERATION = 1.0


class EvaluationLimits:
    """Ends the run after too many calls without gradient after the wanted steps.

    A loop over a loader ends by itself after a few batches; this is for the calls with one batch, such as the
    generation of text.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._batches = -1
        self._since: float | None = None
        self._calls: Counter[int] = Counter()

    def calling(self, module: Any) -> None:
        """Note a call of an outermost module without gradient. Raises StopProbe at the limit."""
        session = self._session
        if session.steps < session.wanted_steps or session.evaluation == "full":
            return
        if session.evaluation == "none":
            session.stop("the training steps are done, and an evaluation begins")
        if self._since is None or self._batches != session.batches:
            self._since, self._batches = self._clock(), session.batches
            self._calls.clear()
        is_model = next(module.parameters(), None) is not None
        if is_model and self._calls[id(module)] >= _CALLS and self._clock() - self._since > SECONDS:
            session.stop(f"a training step is done, and calls for evaluation take more than {SECONDS:g} s")
        self._calls[id(module)] += 1

    def _clock(self) -> float:
        return time.monotonic() - self._session.own_seconds


def limit_generation(session: Session, module: ModuleType) -> None:
    """Have `generate` of transformers.generation.utils stop after a second, once the steps are made."""
    original = module.GenerationMixin.generate

    @functools.wraps(original)
    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.steps < session.wanted_steps or session.evaluation != "short":
            return original(self, *args, **kwargs)
        given = kwargs.get("generation_config")
        if given is None:
            kwargs.setdefault("max_time", _GENERATION)
        elif given.max_time is None:
            kwargs["generation_config"] = copy.deepcopy(given)
            kwargs["generation_config"].max_time = _GENERATION
        start = time.monotonic()
        out = original(self, *args, **kwargs)
        if time.monotonic() - start > _GENERATION:
            session.truncate_loop("text generation ended early", frames.site(sys._getframe(1)))
        return out

    module.GenerationMixin.generate = generate
