"""Batches after the wanted steps of a pass: the next one, and the last one of the loader if it is shorter."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from torch.utils.data import IterableDataset

from ..protocol import ExtraBatchDoneLine, ExtraBatchLine, UserPlace
from .describe import describe
from .session import Session

_COSTLY = 3.0  # seconds for one batch with its step
_BATCHES = 2_000_000
_SECONDS = 1.0
# Loops of libraries fetch batches ahead of their steps, and count the steps of an epoch.
_LIBRARIES = ("accelerate", "lightning", "pytorch_lightning", "transformers", "trl", "ignite", "fastai")


class ExtraBatches:
    """The extra batches of one pass.

    The batches before the last one are skipped; the script's own counter of batches is wrong then. exhausted
    says that the loader has no more batches, and none was skipped.
    """

    def __init__(
        self, session: Session, loader: Any, batches: Any, loader_id: int, created_at: UserPlace | None
    ) -> None:
        self._session = session
        self._loader, self._batches, self._id = loader, batches, loader_id
        self._rows: int | None = None
        self._place = str(created_at or loader_id)
        self._handed: set[str] = set()
        self._since = self._clock()
        self._running = False
        self.exhausted = False

    def handed(self, batch: Any) -> Any:
        """Note that the script gets a batch; returns it."""
        rows = row_count(batch)
        if self._rows is None:
            self._rows = rows
        batched = getattr(self._loader, "batch_size", None) is not None
        self._session.batch_rows = rows if batched else None
        self._since = self._clock()
        return batch

    def done(self) -> None:
        """Note that the script is done with the last batch it got, by asking for another one."""
        if self._running:
            self._running = False
            self._session.extra_batch = None
            self._session.sink.write(ExtraBatchDoneLine(kind="extra_batch_done", loader=self._id))

    def next(self, caller: FrameType, trains: bool) -> Iterator[Any]:
        """The next extra batch, if there is one: an iterator over at most one batch.

        A pass that trains gets one more batch of the usual size, as state may be carried over from the first.
        """
        if not self._handed and self._place in self._session.extra_places:
            return  # a loader of the same place, made for each epoch, had them
        if not self._is_cheap(caller):
            return
        self._session.extra_places.add(self._place)
        if trains and "next" not in self._handed:
            self._handed.add("next")
            batch = next(self._batches, _NO_BATCH)
            if batch is not _NO_BATCH:
                self._begin("next", batch, 0)
                yield batch
            else:
                self.exhausted = True
            return
        # The batches of two loaders belong together.
        if "last" in self._handed or self._session.active_passes > 1:
            return
        self._handed.add("last")
        skipped = self._skip_to_last()
        batch = _NO_BATCH if skipped is None else next(self._batches, _NO_BATCH)
        if batch is not _NO_BATCH:
            self.exhausted = not skipped
            self._begin("last", batch, skipped or 0)
            yield batch

    def begin_pass(self, batch: Any) -> None:
        """Note that the script gets the only batch of a pass after training."""
        self._begin("pass", batch, 0)

    def _is_cheap(self, caller: FrameType) -> bool:
        return self._clock() - self._since < _COSTLY and is_cheap(self._session, caller)

    def _clock(self) -> float:
        """The time of the script, without the probe's own trials."""
        return time.monotonic() - self._session.own_seconds

    def _begin(self, which: Any, batch: Any, skipped: int) -> None:
        self._running = True
        self._session.extra_batch = which
        self._session.extra_batches += 1
        self._session.sink.write(
            ExtraBatchLine(
                kind="extra_batch",
                loader=self._id,
                which=which,
                skipped=skipped,
                rows=row_count(batch),
                usual_rows=self._rows,
                value=describe(batch),
            )
        )

    def _skip_to_last(self) -> int | None:
        """Skip the batches before the last one; returns their number, None for no last one or a full one."""
        loader, inner = self._loader, self._batches
        sampler = getattr(inner, "_sampler_iter", None)
        if sampler is None or isinstance(loader.dataset, IterableDataset) or not inner._auto_collation:
            return None
        last: Any = None
        number, start = 0, time.monotonic()
        for indices in itertools.islice(sampler, _BATCHES):
            last, number = indices, number + 1
            if number % 1000 == 0 and time.monotonic() - start > _SECONDS:
                return None
        self.exhausted = last is None
        short = isinstance(last, (list, tuple)) and loader.batch_size is not None
        if not short or len(last) >= loader.batch_size:
            return None
        inner._sampler_iter = iter([last])
        return number - 1


def is_cheap(session: Session, caller: FrameType) -> bool:
    """Whether a loop may get batches after the wanted steps."""
    name = str(caller.f_globals.get("__name__", "")).partition(".")[0]
    return session.takes_extra_batches and not session.overfits and name not in _LIBRARIES


def row_count(batch: Any) -> int | None:
    """The rows of a batch: the size of all its tensors in dimension 0, if equal."""
    values = [batch] if hasattr(batch, "shape") else batch
    if isinstance(values, Mapping):
        values = list(values.values())
    if not isinstance(values, (list, tuple)):
        return None
    sizes = {each.shape[0] for each in values if getattr(each, "shape", None)}
    return sizes.pop() if len(sizes) == 1 else None


_NO_BATCH = object()
