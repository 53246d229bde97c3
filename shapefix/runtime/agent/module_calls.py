"""Calls of modules: one tree with gradients and one without for each outermost module."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any, Literal

import torch
from torch import nn

from ..protocol import (
    ExceptionDetails,
    ForwardSignatureLine,
    ModuleDetails,
    ModuleEnterLine,
    ModuleExitLine,
    NonFiniteSource,
)
from . import frames
from .call_sites import CallSites
from .construction_sites import ConstructionSites
from .describe import describe, describe_call, integer_range
from .evaluation_limits import EvaluationLimits
from .exceptions import ExceptionRecorder
from .multiplications import multiplications
from .overfitting import Overfitting
from .parameter_counts import parameter_counts
from .repeated_calls import RepeatedCalls
from .row_trials import RowTrials
from .session import Session
from .watchers import signatures
from .watchers.distribution_samples import DistributionSamples
from .watchers.modes import Modes
from .watchers.not_finite import ModuleSums
from .watchers.recorded_evaluation import RecordedEvaluation
from .watchers.replicas import Replicas

_AT_MOST = 3000


class ModuleCalls:
    """Watches the calls of modules of one session."""

    def __init__(
        self,
        session: Session,
        exceptions: ExceptionRecorder,
        constructions: ConstructionSites,
        call_sites: CallSites,
    ) -> None:
        self._session = session
        self._exceptions = exceptions
        self._constructions = constructions
        self._call_sites = call_sites
        self._repeated = RepeatedCalls(session)
        self._limits = EvaluationLimits(session)
        self._stack: list[Any] = []
        self._seen: set[tuple[int, bool]] = set()
        self._before_loops: set[int] = set()
        self._number = 0
        self._parents: list[int] = []
        self._recording = self._wrapped = False
        self._names: dict[int, str] = {}
        self._variables: dict[int, str | None] = {}
        self.roots: list[Any] = []
        self.trials = RowTrials(session, constructions)
        self.overfitting = Overfitting(session)
        self.replicas = Replicas(session)
        self.samples = DistributionSamples(session)
        self.modes = Modes(session)
        self.evaluation = RecordedEvaluation(session, self.modes)
        session.before_end = self.overfitting.report
        self.sums = ModuleSums()

    def install(self) -> None:
        """Watch the calls of all modules from now on."""
        original, calls, session = nn.Module.__call__, self, self._session

        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not session.watches():
                return original(self, *args, **kwargs)
            if calls._stack or session.depth:  # or within backward, where checkpointing recomputes
                return calls._inner(original, self, args, kwargs, sys._getframe(1))
            return calls._outermost(original, self, args, kwargs, sys._getframe(1))

        nn.Module.__call__ = __call__

    def name(self, module: object) -> str:
        """A module's name within the outermost module of the current or last call."""
        return self._names.get(id(module), type(module).__name__)

    def active(self) -> list[Any]:
        """The running modules, the outermost first."""
        return self._stack

    def running(self) -> str | None:
        """The name of the innermost running module, if any."""
        return self.name(self._stack[-1]) if self._stack else None

    def _outermost(
        self, original: Callable[..., Any], module: Any, args: Any, kwargs: Any, caller: FrameType
    ) -> Any:
        self._session.raise_if_stopped()
        self._exceptions.flush()
        self._session.model_calls += 1
        self._session.guessed_at = None
        training = torch.is_grad_enabled()
        if not training:
            self._limits.calling(module)
        key = (id(module), training)
        first = key not in self._seen and self._number < _AT_MOST
        # A summary of the model before the loop has sizes of its own.
        again = training and bool(self._session.active_passes) and id(module) in self._before_loops
        again = again and self._number < _AT_MOST
        if first:
            self._seen.add(key)
            if training and not self._session.active_passes:
                self._before_loops.add(id(module))
            self.roots.append(module)  # keeps it alive, so that no other module gets its id
        if again:
            self._before_loops.discard(id(module))
        if first or again:
            self._names = {id(each): name for name, each in module.named_modules()}
            self._names[id(module)] = type(module).__name__
        known = None
        if not training and not first and self._session.evaluation != "full":
            known = self._repeated.find(module, args, kwargs, caller)
            if known is not None and known.replays:
                return known.replay()
        outer, self._recording = self._recording, first or again
        number = self._number + 1
        if training:
            self._session.on_phase("forward")
            self.overfitting.called(module, args, kwargs)
            self.replicas.called(module, caller)
        call_site = self._call_sites.enter(caller)
        start, collectives = time.perf_counter(), self._session.collectives
        try:
            out = self._inner(original, module, args, kwargs, caller)
        finally:
            self._recording = outer
            counts = parameter_counts(module, number) if first or again else None
            if counts is not None:
                self._session.sink.write(counts)
            if training:
                self._session.on_phase("loop")
        self._call_sites.returned(call_site)
        self.modes.called(module, training, caller)
        if training:
            self.evaluation.called(module, args, kwargs, out, caller)
        if first and training:
            self.trials.called(module, args, kwargs, out, time.perf_counter() - start, caller)
        if known is not None and collectives == self._session.collectives:  # the other ranks would wait
            known.record(out, time.perf_counter() - start)
        return out

    def _inner(
        self, original: Callable[..., Any], module: Any, args: Any, kwargs: Any, caller: FrameType
    ) -> Any:
        number = self._enter(module, args, kwargs, caller) if self._recording else 0
        call_site = self._call_sites.record(caller) if number else 0
        self._stack.append(module)
        self._session.depth += 1
        start = time.perf_counter()
        try:
            out = original(module, *args, **kwargs)
        except BaseException as error:
            self._session.depth -= 1
            self._stack.pop()
            self._exceptions.record(
                error, "module", caller, lambda: self._details(module, args, kwargs, caller)
            )
            raise
        else:
            self._session.depth -= 1
            self._stack.pop()
        finally:
            if number:
                self._parents.pop()
        if number:
            self.trials.ran(module)
            self._call_sites.returned(call_site)
            self._call_sites.forward_returned(module)
            seconds = time.perf_counter() - start
            self._session.sink.write(
                ModuleExitLine(
                    kind="module_exit",
                    id=number,
                    seconds=round(seconds, 6),
                    multiplications=multiplications(module, args, kwargs, out),
                    out=describe(out),
                )
            )
            self._sum(module, "out", out)
        return out

    def _enter(self, module: Any, args: Any, kwargs: Any, caller: FrameType) -> int:
        if self._number >= _AT_MOST:
            self._recording = False
            return 0
        self._number += 1
        outermost = not self._parents
        self._session.sink.write(
            ModuleEnterLine(
                kind="module_enter",
                id=self._number,
                parent=self._parents[-1] if self._parents else None,
                name=self.name(module),
                type=type(module).__name__,
                grad_enabled=torch.is_grad_enabled(),
                constructed_at=self._constructions.site_of(module),
                called_at=frames.site(caller) if outermost else None,
                variable=self._variable(module, caller) if outermost else None,
                input=describe_call(args, kwargs),
            )
        )
        if outermost or self._wrapped:
            signature = signatures.forward_signature(module, args, kwargs)
            # The forward of a wrapper such as DataParallel has no names of its own.
            self._wrapped = signature is not None and not signature["parameters"]
            if signature is not None and kwargs and not self._wrapped:
                self._session.sink.write(
                    ForwardSignatureLine(kind="forward_signature", id=self._number, signature=signature)
                )
        if outermost:
            self._sum(module, "input", [*args, *kwargs.values()])
        self._parents.append(self._number)
        return self._number

    def _variable(self, module: Any, caller: FrameType) -> str | None:
        """The variable of an outermost module at its first call."""
        if id(module) not in self._variables:
            self._variables[id(module)] = frames.variable_of(caller, module)
        return self._variables[id(module)]

    def parameter_names(self) -> dict[int, str]:
        """The names of parameters by id; after the variable of their model if they are not unique."""
        names: dict[int, tuple[str, str | None]] = {}
        for root in self.roots:
            variable = self._variables.get(id(root))
            names |= {id(each): (name, variable) for name, each in root.named_parameters()}
        known = Counter(name for name, _ in names.values())
        return {
            key: f"{variable.removeprefix('self.')}.{name}" if variable and known[name] > 1 else name
            for key, (name, variable) in names.items()
        }

    def label(self, module: Any) -> str:
        """The type of an outermost module, with its variable if there are several of the type."""
        kind, variable = type(module).__name__, self._variables.get(id(module))
        several = len({id(each) for each in self.roots if type(each).__name__ == kind}) > 1
        return f"{kind} `{variable}`" if several and variable else kind

    def _sum(self, module: Any, what: Literal["input", "out"], value: Any) -> None:
        if torch.is_grad_enabled() and not self._session.sizes_only:
            source = NonFiniteSource(
                name=self.name(module),
                type=type(module).__name__,
                what=what,
                constructed_at=self._constructions.site_of(module),
            )
            self.sums.add(source, value)

    def _details(self, module: Any, args: Any, kwargs: Any, caller: FrameType) -> ExceptionDetails:
        """Describe a failed module: its name, its attributes, and its input."""
        if not self._recording and self._stack:
            self._names = {id(each): name for name, each in self._stack[0].named_modules()}
        attributes: dict[str, int | str] = {}
        for name, value in list(vars(module).items()):
            if isinstance(value, (int, str)) and not name.startswith("_") and name != "training":
                attributes[name] = value if isinstance(value, int) else value[:80]
        parameters = getattr(module, "_parameters", {})
        known = ModuleDetails(
            name=self.name(module),
            type=type(module).__name__,
            library=not frames.is_users(_file(type(module))),
            constructed_at=self._constructions.site_of(module),
            constructed_through=self._constructions.callers_of(module),
            attributes=attributes,
            parameters={name: describe(each) for name, each in parameters.items() if each is not None},
            input=describe_call(args, kwargs),
            integer_ranges=[integer_range(each) for each in args[:6]],
            outermost=not self._stack,
            called_at=frames.site(caller),
        )
        return {"module": known}


def _file(kind: type) -> str:
    module = sys.modules.get(kind.__module__)
    return getattr(module, "__file__", None) or "<unknown>"
