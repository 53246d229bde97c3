"""Calls of modules: one tree of training and one of evaluation for each outermost module."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch import nn

from . import describe, frames
from .call_sites import Visits
from .construction import Births
from .failures import Failures
from .repeated_calls import Answers
from .session import Session
from .watchers import signatures
from .watchers.not_finite import Sums

_AT_MOST = 3000


class Calls:
    """Watches the calls of modules of one session."""

    def __init__(self, session: Session, failures: Failures, births: Births, visits: Visits) -> None:
        self._session = session
        self._failures = failures
        self._births = births
        self._visits = visits
        self._answers = Answers(session)
        self._stack: list[Any] = []
        self._told: set[tuple[int, bool]] = set()
        self._number = 0
        self._parents: list[int] = []
        self._recording = self._wrapped = False
        self._names: dict[int, str] = {}
        self.roots: list[Any] = []
        self.sums = Sums()

    def install(self) -> None:
        """Watch the calls of all modules from now on."""
        original, calls, session = nn.Module.__call__, self, self._session

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not session.watches():
                return original(self, *args, **kwargs)
            if calls._stack or session.depth:  # or within backward, where a checkpoint computes again
                return calls._inner(original, self, args, kwargs, sys._getframe(1))
            return calls._outermost(original, self, args, kwargs, sys._getframe(1))

        nn.Module.__call__ = __call__

    def name(self, module: object) -> str:
        """A module's name within the outermost module that is running, or has run last."""
        return self._names.get(id(module), type(module).__name__)

    def active(self) -> list[Any]:
        """The modules that are running, the outermost first."""
        return self._stack

    def running(self) -> str | None:
        """The name of the innermost module that is running; None where none is."""
        return self.name(self._stack[-1]) if self._stack else None

    def _outermost(
        self, original: Callable[..., Any], module: Any, args: Any, kwargs: Any, caller: FrameType
    ) -> Any:
        self._session.go_on()
        self._failures.flush()
        self._session.model_calls += 1
        self._session.guess = None
        training = torch.is_grad_enabled()
        key = (id(module), training)
        first = key not in self._told and self._number < _AT_MOST
        if first:
            self._told.add(key)
            self.roots.append(module)  # keeps it alive, so that no other module gets its id
            self._names = {id(each): name for name, each in module.named_modules()}
            self._names[id(module)] = type(module).__name__
        known = None
        if not training and not first:
            known = self._answers.known(module, args, kwargs, caller)
            if known is not None and known.answered:
                return known.answer()
        outer, self._recording = self._recording, first
        if training:
            self._session.phase("forward")
        visit = self._visits.come(caller)
        start, met = time.perf_counter(), self._session.collectives
        try:
            out = self._inner(original, module, args, kwargs, caller)
        finally:
            self._recording = outer
            if training:
                self._session.phase("loop")
        self._visits.passed(visit)
        if known is not None and met == self._session.collectives:  # the other ranks would wait
            known.learn(out, time.perf_counter() - start)
        return out

    def _inner(
        self, original: Callable[..., Any], module: Any, args: Any, kwargs: Any, caller: FrameType
    ) -> Any:
        number = self._enter(module, args, kwargs, caller) if self._recording else 0
        visit = self._visits.reach(caller) if number else 0
        self._stack.append(module)
        self._session.depth += 1
        start = time.perf_counter()
        try:
            out = original(module, *args, **kwargs)
        except BaseException as error:
            self._session.depth -= 1
            self._stack.pop()
            self._failures.note(
                error, "module", caller, module=lambda: self._about(module, args, kwargs, caller)
            )
            raise
        else:
            self._session.depth -= 1
            self._stack.pop()
        finally:
            if number:
                self._parents.pop()
        if number:
            self._visits.passed(visit)
            self._visits.returned(module)
            seconds = time.perf_counter() - start
            self._session.observations.write(
                "leave", id=number, seconds=round(seconds, 6), out=describe.describe(out)
            )
            self._sum(module, "out", out)
        return out

    def _enter(self, module: Any, args: Any, kwargs: Any, caller: FrameType) -> int:
        if self._number >= _AT_MOST:
            self._recording = False
            return 0
        self._number += 1
        outermost = not self._parents
        self._session.observations.write(
            "enter",
            id=self._number,
            parent=self._parents[-1] if self._parents else None,
            name=self.name(module),
            type=type(module).__name__,
            training=torch.is_grad_enabled(),
            born=self._births.of(module),
            called=frames.site(caller) if outermost else None,
            input=describe.call(args, kwargs),
        )
        if outermost or self._wrapped:
            signature = signatures.known(module, args, kwargs)
            # The forward of a wrapper, like that of DataParallel, names nothing itself.
            self._wrapped = signature is not None and not signature["named"]
            if signature is not None and kwargs and not self._wrapped:
                self._session.observations.write("signature", id=self._number, **signature)
        if outermost:
            self._sum(module, "input", [*args, *kwargs.values()])
        self._parents.append(self._number)
        return self._number

    def _sum(self, module: Any, what: str, value: Any) -> None:
        if torch.is_grad_enabled() and not self._session.sizes_only:
            whose = {"name": self.name(module), "type": type(module).__name__, "what": what}
            self.sums.see({**whose, "born": self._births.of(module)}, value)

    def _about(self, module: Any, args: Any, kwargs: Any, caller: FrameType) -> dict[str, Any]:
        """What is to be known of a module that has raised: who it is, what it holds, what it was given."""
        if not self._recording and self._stack:
            self._names = {id(each): name for name, each in self._stack[0].named_modules()}
        own: dict[str, Any] = {}
        for name, value in list(vars(module).items()):
            if isinstance(value, (int, str)) and not name.startswith("_") and name != "training":
                own[name] = value if isinstance(value, int) else value[:80]
        parameters = getattr(module, "_parameters", {})
        return {
            "name": self.name(module),
            "type": type(module).__name__,
            "library": not frames.is_users(_file(type(module))),
            "born": self._births.of(module),
            "holds": own,
            "parameters": {
                name: describe.describe(each) for name, each in parameters.items() if each is not None
            },
            "input": describe.call(args, kwargs),
            "numbers": [describe.numbers(each) for each in args[:6]],
            "outermost": not self._stack,
            "called": frames.site(caller),
        }


def _file(kind: type) -> str:
    module = sys.modules.get(kind.__module__)
    return getattr(module, "__file__", None) or "<unknown>"
