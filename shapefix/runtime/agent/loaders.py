"""DataLoaders: no workers, described batches, and loops ended as soon as enough is known."""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.data import DataLoader

from ..protocol import BatchLine, Collator, ExceptionDetails, LoaderDetails, LoaderLine, UserPlace
from . import frames
from .call_sites import CallSites
from .dataset_samples import sample_rows
from .describe import describe
from .evaluation_limits import SECONDS
from .exceptions import ExceptionRecorder
from .extra_batches import ExtraBatches, is_cheap
from .overfitting import same_batch
from .session import Session
from .worker_starts import refusal, start_method

_BATCHES_DESCRIBED = 2
_PASSES, _BATCHES = 5, 256
_EMPTY_PASSES, _EMPTY_SECONDS = 1000, 10.0
_PASS_NUMBERS = itertools.count(1)
_MORE = "a training step is done, and the script requests more batches"
_WITHOUT_MODEL = 20.0  # seconds for a pass that only looks at the data


@dataclass
class LoaderState:
    """One loader: its id, its place of creation, and the results of its passes.

    batch_seconds is the time of a batch in the last pass, later_seconds that of all passes after training.
    evaluated_at are the places of evaluations with this loader after training.
    """

    id: int
    created_at: UserPlace | None
    passes_without_training: int = 0
    later_seconds: float = 0.0
    batch_seconds: float = 0.0
    empty_passes: int = 0
    empty_since: float | None = None
    steps: int = 0
    described: int = 0
    sampled: bool = False
    trained_batch: Any = None
    worker_start: str | None = None
    evaluated_at: set[str] = field(default_factory=set)


class Loaders:
    """Watches the loaders of one session."""

    def __init__(self, session: Session, exceptions: ExceptionRecorder, call_sites: CallSites) -> None:
        self.session = session
        self.exceptions = exceptions
        self.call_sites = call_sites
        self._states: weakref.WeakKeyDictionary[Any, LoaderState] = weakref.WeakKeyDictionary()
        self._ids = itertools.count(1)

    def install(self) -> None:
        """Watch the construction and the passes of all loaders from now on."""
        original_init, original_iter, loaders = DataLoader.__init__, DataLoader.__iter__, self
        signature = inspect.signature(original_init)

        @functools.wraps(original_init)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            try:
                given = signature.bind(self, *args, **kwargs)
            except TypeError:
                original_init(self, *args, **kwargs)
                return
            workers = given.arguments.get("num_workers", 0)
            method = start_method(given.arguments.get("multiprocessing_context")) if workers else None
            if workers:
                given.arguments["num_workers"] = 0
                for name in ("prefetch_factor", "persistent_workers", "timeout", "multiprocessing_context"):
                    given.arguments.pop(name, None)
            original_init(*given.args, **given.kwargs)
            state = LoaderState(next(loaders._ids), frames.site(sys._getframe(1)), worker_start=method)
            loaders._states[self] = state
            loaders.session.sink.write(
                LoaderLine(
                    kind="loader",
                    id=state.id,
                    created_at=state.created_at,
                    workers=workers,
                    batch_size=self.batch_size,
                    dataset=type(self.dataset).__name__,
                    length=_length(self.dataset),
                    collate=collator(self),
                )
            )

        def __iter__(self: Any) -> Any:
            if not loaders.session.watches():
                return original_iter(self)
            state, caller = loaders._state(self), sys._getframe(1)
            method, state.worker_start = state.worker_start, None
            refused = refusal(self, method, state.id, caller) if method else None
            if refused is not None:
                loaders.session.sink.write(refused)
            return LoaderIterator(loaders, self, state, original_iter, caller)

        DataLoader.__init__ = __init__
        DataLoader.__iter__ = __iter__

    def _state(self, loader: Any) -> LoaderState:
        if loader not in self._states:
            self._states[loader] = LoaderState(next(self._ids), None)
        return self._states[loader]


class LoaderIterator:
    """One pass over a loader, as the script's iterator."""

    def __init__(self, loaders: Loaders, loader: Any, state: LoaderState, original: Any, caller: Any) -> None:
        self._session, self._exceptions = loaders.session, loaders.exceptions
        self._call_sites = loaders.call_sites
        self._loader, self._state = loader, state
        self._site = frames.site(caller)
        self._done = self._empty = self._again = False
        self._yielded = 0
        self._begin(caller)
        self._steps, self._backward_calls = self._session.steps, self._session.backward_calls
        self._counted = self._steps
        self._calls, self._start = self._session.model_calls, time.monotonic()
        self._own = self._session.own_seconds
        self._session.depth += 1
        try:
            self._batches: Iterator[Any] = original(loader)
        except BaseException as error:
            self._session.depth -= 1
            self._exceptions.record(error, "loader", caller, self._details)
            raise
        self._session.depth -= 1
        self._session.active_passes += 1
        self._outer_pass, self._session.pass_number = self._session.pass_number, next(_PASS_NUMBERS)
        self._outer_loader, self._session.pass_loader = self._session.pass_loader, state.id
        self._extra = ExtraBatches(self._session, loader, self._batches, state.id, state.created_at)

    def __iter__(self) -> LoaderIterator:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        if "_batches" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._batches, name)

    def __del__(self) -> None:
        if "_batches" in self.__dict__:
            self._finish()

    def __next__(self) -> Any:
        session = self._session
        if not session.watches():
            return next(self._batches)
        if session.depth == 0:
            session.raise_if_stopped()
            self._exceptions.flush()
        if self._done:
            if self._empty and frames.calls_next(sys._getframe(1)):
                session.stop(_MORE)
            raise StopIteration
        if self._again and frames.calls_next(sys._getframe(1)):
            session.stop(_MORE)
        # Code with a `next` of its own has epochs of its own, too.
        own = frames.calls_next(sys._getframe(1))
        session.pass_batches = None if own else _length(self._loader)
        self._extra.done()
        self._state.steps += session.steps - self._counted
        self._counted = session.steps
        caller = sys._getframe(1)
        session.on_batch_requested(caller)
        session.on_loading()
        batches = self._batches
        if self._is_enough():
            batches = self._extra.next(caller, trains=session.steps > self._steps)
        self._call_sites.record(caller)
        session.depth += 1
        session.loading = True
        try:
            batch = next(batches)
        except StopIteration:
            session.depth -= 1
            session.on_loaded(None)
            self._sample()
            if batches is not self._batches and not self._extra.exhausted:
                session.truncate_loop("a loop over a loader ended early", self._site)
            self._finish()
            raise
        except BaseException as error:
            session.depth -= 1
            self._sample(failed=True)
            self._exceptions.record(error, "loader", caller, self._details)
            raise
        finally:
            session.loading = False
        session.depth -= 1
        self._yielded += 1
        session.batches += 1
        if self._state.described < _BATCHES_DESCRIBED:
            self._state.described += 1
            session.sink.write(
                BatchLine(
                    kind="batch",
                    loader=self._state.id,
                    number=self._state.described,
                    value=describe(batch),
                    requested_at=self._site,
                )
            )
        if session.overfits:
            batch = self._trained_batch(batch)
        if self._again and self._yielded == 1:
            self._extra.begin_pass(batch)
        batch = self._extra.handed(batch)
        session.on_loaded(session.batch_rows)
        return batch

    def _trained_batch(self, batch: Any) -> Any:
        """The first batch again, in a pass with training."""
        state = self._state
        if state.trained_batch is None:
            state.trained_batch = same_batch(batch)
            return batch
        trains = self._session.backward_calls > self._backward_calls or state.steps
        return same_batch(state.trained_batch) if trains else batch

    def _begin(self, caller: Any) -> None:
        """Begin a pass, if the script has already trained with this loader one of a batch or an empty one."""
        session, state = self._session, self._state
        session.raise_if_stopped()
        self._exceptions.flush()
        if state.steps >= session.wanted_steps and not self._evaluates():
            if session.evaluated:
                session.stop("a training step and an evaluation pass are done")
            if is_cheap(session, caller) and state.later_seconds + state.batch_seconds < SECONDS:
                self._again = True
                return
            session.truncate_loop("a second training loop over a loader got no batches", self._site)
            state.empty_passes += 1
            self._done = self._empty = True
            state.empty_since = state.empty_since or time.monotonic()
            if state.empty_passes > _EMPTY_PASSES or time.monotonic() - state.empty_since > _EMPTY_SECONDS:
                session.stop("a training step is done, and the script requests more passes over the loader")
        elif state.passes_without_training >= _PASSES:
            session.stop(f"{_PASSES} passes over the same loader without a training step")

    def _evaluates(self) -> bool:
        """Whether a pass over the training data is an evaluation, the first one at its place."""
        place = str(self._site)
        if torch.is_grad_enabled() or place in self._state.evaluated_at:
            return False
        self._state.evaluated_at.add(place)
        return True

    def _is_enough(self) -> bool:
        session = self._session
        steps, backward_calls = session.steps - self._steps, session.backward_calls - self._backward_calls
        if self._again:
            return self._yielded > 0
        if steps and self._state.steps >= session.wanted_steps:
            return True
        if backward_calls:
            return self._yielded >= _BATCHES
        if session.model_calls > self._calls:
            trained = session.steps >= session.wanted_steps
            if trained and session.evaluation == "full":
                return False
            slow = trained and time.monotonic() - self._start - self._own_seconds() > SECONDS
            return slow or self._yielded >= max(2, session.wanted_steps)
        return self._yielded >= 2 and time.monotonic() - self._start > _WITHOUT_MODEL

    def _own_seconds(self) -> float:
        """The time of the probe's own trials in this pass."""
        return self._session.own_seconds - self._own

    def _finish(self) -> None:
        """End the pass, and count its model calls and training steps."""
        if self.__dict__.get("_over"):
            return
        self.__dict__["_over"] = True
        self._done = True
        session = self._session
        session.active_passes -= 1
        session.pass_number, session.pass_loader = self._outer_pass, self._outer_loader
        seconds = time.monotonic() - self._start - self._own_seconds()
        self._state.batch_seconds = seconds / max(self._yielded, 1)
        self._state.later_seconds += seconds if self._again else 0.0
        called = session.model_calls > self._calls
        trained = session.steps > self._steps
        if called and not trained:
            self._state.passes_without_training += 1
            if session.steps >= session.wanted_steps and session.backward_calls == self._backward_calls:
                session.evaluated = True

    def _sample(self, failed: bool = False) -> None:
        """Sample rows of the dataset, once: later batches may combine rows not combined in the first ones."""
        if self._state.sampled or (self._yielded == 0 and not failed):
            return
        self._state.sampled = True
        self._session.depth += 1
        try:
            known = sample_rows(self._loader, self._state.id)
        finally:
            self._session.depth -= 1
        if known is None:
            return
        line, error = known
        self._session.sink.write(line)
        if error is not None and not failed:
            self._session.depth += 1  # the script cannot have swallowed it
            self._exceptions.record(error, "rows", None, self._details)
            self._session.depth -= 1

    def _details(self) -> ExceptionDetails:
        state = self._state
        details = LoaderDetails(id=state.id, created_at=state.created_at, collate=collator(self._loader))
        return {"loader": details}


def collator(loader: Any) -> Collator:
    """The collate function of a loader: its name, its module, and its place if it is the user's."""
    made = getattr(loader, "collate_fn", None)
    inner = getattr(made, "data_collator", None)  # transformers wraps it to remove columns
    made = made if inner is None else inner
    if isinstance(made, functools.partial):
        made = made.func
    named = made if hasattr(made, "__qualname__") else type(made)
    code = getattr(made, "__code__", None) or getattr(getattr(type(made), "__call__", None), "__code__", None)  # noqa: B004
    if code is not None and not frames.is_users(code.co_filename):
        code = None
    return Collator(
        name=getattr(named, "__qualname__", "?"),
        module=getattr(named, "__module__", "?"),
        file=None if code is None else code.co_filename,
        row=None if code is None else code.co_firstlineno,
    )


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except Exception:
        return None
