"""Watch the first forward and backward of a framework's training loop."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from .single_step import StepResult, StepWatch, gradient_names, same_functions


class FirstStep:
    """The watch of a running process from start() until backward returns, or an exception.

    Nothing else is changed: the step is the one of the training. on_end gets the result, once. within are
    methods around the step, as class and name; an exception of one of them ends the watch, too.
    """

    def __init__(
        self,
        model: nn.Module,
        on_end: Callable[[StepResult], None],
        within: Sequence[tuple[type, str]] = (),
    ) -> None:
        self._within = within
        self._model = model
        self._on_end = on_end
        self._watch = StepWatch()
        self._restored = contextlib.ExitStack()
        self._process = os.getpid()
        self.is_active = False

    def start(self) -> None:
        """Replace functions of torch by watched ones until the end."""
        self._restored.enter_context(same_functions())
        self._watch.install()
        watched_call, watched_backward, step = nn.Module.__call__, torch.autograd.backward, self

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return watched_call(self, *args, **kwargs)
            except Exception as error:
                step.failed(error)
                raise

        def backward(*args: Any, **kwargs: Any) -> Any:
            try:
                out = watched_backward(*args, **kwargs)
            except Exception as error:
                step.failed(error)
                raise
            if step._watch.is_idle():
                step.end(with_gradients=True)
            return out

        nn.Module.__call__ = __call__
        torch.autograd.backward = backward
        for owner, name in self._within:
            self._guard(owner, name)
        self.is_active = True

    def _guard(self, owner: type, name: str) -> None:
        """Let an exception of a method end the watch."""
        original, step = getattr(owner, name), self

        @functools.wraps(original)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            except Exception as error:
                step.end(error)
                raise

        setattr(owner, name, guarded)
        self._restored.callback(setattr, owner, name, original)

    def failed(self, error: Exception) -> None:
        """End the watch after an exception out of the outermost watched call."""
        if self._watch.is_idle():
            self.end(error)

    def end(self, error: Exception | None = None, *, with_gradients: bool = False) -> None:
        """End the watch; a second call has no effect."""
        if not self.is_active or os.getpid() != self._process:
            return
        self.is_active = False
        self._restored.close()
        names: tuple[tuple[str, ...] | None, tuple[str, ...] | None] = (None, None)
        if with_gradients:
            names = gradient_names(self._model)
        if error is not None:
            self._watch.raised(error)
        self._on_end(StepResult(self._watch.ended(error), None, error, *names))
