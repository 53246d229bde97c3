"""DataLoaders: no workers, batches described, and loops that end once they have told enough."""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch.utils.data import DataLoader

from . import frames
from .call_sites import Visits
from .describe import describe
from .failures import Failures
from .samples import examine
from .session import Session

_TOLD = 2
_PASSES, _BATCHES = 5, 256
_EMPTY_PASSES, _EMPTY_SECONDS = 1000, 10.0
_WITHOUT_MODEL = 20.0  # seconds that a pass may take which only looks at the data


@dataclass
class Known:
    """One loader: its number, where it was made, and what its passes have led to."""

    number: int
    made: frames.Place | None
    passes: int = 0
    fruitless: int = 0
    empty: int = 0
    since: float | None = None
    steps: int = 0
    told: int = 0
    examined: bool = False


class Loaders:
    """Watches the loaders of one session."""

    def __init__(self, session: Session, failures: Failures, visits: Visits) -> None:
        self.session = session
        self.failures = failures
        self.visits = visits
        self._known: weakref.WeakKeyDictionary[Any, Known] = weakref.WeakKeyDictionary()
        self._numbers = itertools.count(1)

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
            if workers:
                given.arguments["num_workers"] = 0
                for name in ("prefetch_factor", "persistent_workers", "timeout", "multiprocessing_context"):
                    given.arguments.pop(name, None)
            original_init(*given.args, **given.kwargs)
            known = Known(next(loaders._numbers), frames.site(sys._getframe(1)))
            loaders._known[self] = known
            loaders.session.observations.write(
                "loader",
                id=known.number,
                made=known.made,
                workers=workers,
                batch_size=self.batch_size,
                dataset=type(self.dataset).__name__,
                length=_length(self.dataset),
                collate=collator(self),
            )

        def __iter__(self: Any) -> Any:
            if not loaders.session.watches():
                return original_iter(self)
            return Pass(loaders, self, loaders._of(self), original_iter, sys._getframe(1))

        DataLoader.__init__ = __init__
        DataLoader.__iter__ = __iter__

    def _of(self, loader: Any) -> Known:
        if loader not in self._known:
            self._known[loader] = Known(next(self._numbers), None)
        return self._known[loader]


class Pass:
    """One pass over a loader: the iterator that the script gets."""

    def __init__(self, loaders: Loaders, loader: Any, known: Known, original: Any, caller: Any) -> None:
        self._session, self._failures = loaders.session, loaders.failures
        self._visits = loaders.visits
        self._loader, self._known = loader, known
        self._site = frames.site(caller)
        self._done = self._empty = False
        self._yielded = 0
        self._begin()
        self._steps, self._backwards = self._session.steps, self._session.backwards
        self._calls, self._start = self._session.model_calls, time.monotonic()
        self._session.depth += 1
        try:
            self._batches: Iterator[Any] = original(loader)
        except BaseException as error:
            self._session.depth -= 1
            self._failures.note(error, "loader", caller, loader=self._about)
            raise
        self._session.depth -= 1
        self._session.active_passes += 1

    def __iter__(self) -> Pass:
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
            session.go_on()
            self._failures.flush()
        if self._done:
            if self._empty and frames.asks_by_hand(sys._getframe(1)):
                session.stop("a training step made, and the script asks the same loader for more")
            raise StopIteration
        self._known.steps += session.steps - self._steps
        if self._told_enough():
            self._examine()
            session.cut("a loop over a loader ended early", self._site)
            self._finish()
            raise StopIteration
        caller = sys._getframe(1)
        self._visits.reach(caller)
        session.depth += 1
        try:
            batch = next(self._batches)
        except StopIteration:
            session.depth -= 1
            self._examine()
            self._finish()
            raise
        except BaseException as error:
            session.depth -= 1
            self._examine(failed=True)
            self._failures.note(error, "loader", caller, loader=self._about)
            raise
        session.depth -= 1
        self._yielded += 1
        if self._known.told < _TOLD:
            self._known.told += 1
            session.observations.write(
                "batch",
                loader=self._known.number,
                number=self._known.told,
                value=describe(batch),
                asked=self._site,
            )
        return batch

    def _begin(self) -> None:
        """A new pass: nothing more comes from a loader that has been trained with."""
        session, known = self._session, self._known
        session.go_on()
        self._failures.flush()
        known.passes += 1
        if known.steps >= session.wanted_steps:
            if session.evaluated:
                session.stop("one training step and one pass of evaluation made")
            session.cut("a loop over a loader that was trained with ended at once", self._site)
            known.empty += 1
            self._done = self._empty = True
            known.since = known.since or time.monotonic()
            if known.empty > _EMPTY_PASSES or time.monotonic() - known.since > _EMPTY_SECONDS:
                session.stop("a training step made, and the loop over the loader is without end")
        elif known.fruitless >= _PASSES:
            session.stop(f"{_PASSES} passes over the same loader, and no training step")

    def _told_enough(self) -> bool:
        session = self._session
        steps, backwards = session.steps - self._steps, session.backwards - self._backwards
        if steps >= session.wanted_steps:
            return True
        if backwards:
            return self._yielded >= _BATCHES
        if session.model_calls > self._calls:
            return self._yielded >= max(2, session.wanted_steps)
        return self._yielded >= 2 and time.monotonic() - self._start > _WITHOUT_MODEL

    def _finish(self) -> None:
        """The pass is over: count what it led to."""
        if self.__dict__.get("_over"):
            return
        self.__dict__["_over"] = True
        self._done = True
        session = self._session
        session.active_passes -= 1
        called = session.model_calls > self._calls
        trained = session.steps > self._steps
        if called and not trained:
            self._known.fruitless += 1
            if session.steps >= session.wanted_steps and session.backwards == self._backwards:
                session.evaluated = True

    def _examine(self, failed: bool = False) -> None:
        """Look at some rows of the dataset, once: batches yet to come may be what this one was not."""
        if self._known.examined or (self._yielded == 0 and not failed):
            return
        self._known.examined = True
        self._session.depth += 1
        try:
            known = examine(self._loader)
        finally:
            self._session.depth -= 1
        if known is None:
            return
        found, error = known
        self._session.observations.write("rows", loader=self._known.number, **found)
        if error is not None and not failed:
            self._session.depth += 1  # nothing that the script could have swallowed
            self._failures.note(error, "rows", None, loader=self._about)
            self._session.depth -= 1

    def _about(self) -> dict[str, Any]:
        return {"id": self._known.number, "made": self._known.made, "collate": collator(self._loader)}


def collator(loader: Any) -> dict[str, Any]:
    """What makes batches of a loader: its name, its module, and its place where it is the user's."""
    made = getattr(loader, "collate_fn", None)
    inner = getattr(made, "data_collator", None)  # what transformers wraps to remove columns
    made = made if inner is None else inner
    if isinstance(made, functools.partial):
        made = made.func
    named = made if hasattr(made, "__qualname__") else type(made)
    code = getattr(made, "__code__", None) or getattr(getattr(type(made), "__call__", None), "__code__", None)  # noqa: B004
    known = {"name": getattr(named, "__qualname__", "?"), "module": getattr(named, "__module__", "?")}
    if code is not None and frames.is_users(code.co_filename):
        known["file"], known["row"] = code.co_filename, code.co_firstlineno
    return known


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except Exception:
        return None
