"""Sample rows of a dataset, to find rows of different sizes in later batches."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.data import BatchSampler, IterableDataset

from ..protocol import SampledRowsLine
from .describe import part_sizes

_SAMPLERS = (
    "SequentialSampler",
    "RandomSampler",
    "SeedableRandomSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
    "DistributedSampler",
)
_ENDS, _SPREAD, _SECONDS = 4, 56, 2.0


def sample_rows(loader: Any, loader_id: int) -> tuple[SampledRowsLine, BaseException | None] | None:
    """The sizes of some rows of a loader's dataset, and its collator's exception for two different ones.

    None if rows cannot be read by number, if a batch is one row, or if a sampler of the user's own may never
    combine two such rows. The state of random numbers is restored.
    """
    dataset, batches = loader.dataset, loader.batch_sampler
    # accelerate gives each process a part of the batches of another sampler.
    batches = getattr(batches, "batch_sampler", batches)
    if isinstance(dataset, IterableDataset) or not isinstance(batches, BatchSampler):
        return None
    if batches.batch_size < 2 or type(getattr(batches, "sampler", None)).__name__ not in _SAMPLERS:
        return None
    try:
        total = len(dataset)
    except Exception:
        return None
    if loader.drop_last:
        total -= total % batches.batch_size
    with _same_random_numbers():
        rows = dict(_rows(dataset, total))
        sizes = {number: part_sizes(row) for number, row in rows.items()}
        pair = _different(sizes)
        error = None
        if pair is not None:
            try:
                loader.collate_fn([rows[number] for number in pair])
            except Exception as raised:
                error = raised
    keys = list(dict.fromkeys(key for each in sizes.values() for key in each))
    line = SampledRowsLine(
        kind="sampled_rows",
        loader=loader_id,
        total=total,
        numbers=list(sizes),
        sizes={key: [each.get(key) for each in sizes.values()] for key in keys},
        pair=None if pair is None else list(pair),
    )
    return line, error


def _rows(dataset: Any, total: int) -> Iterator[tuple[int, Any]]:
    """The first and the last rows and some between, for two seconds at most."""
    until = time.monotonic() + _SECONDS
    ends = [*range(min(_ENDS, total)), *range(max(total - _ENDS, 0), total)]
    between = range(0, total, max(total // _SPREAD, 1))
    for number in dict.fromkeys([*ends, *between]):
        if time.monotonic() > until:
            return
        try:
            yield number, dataset[number]
        except Exception:
            return


def _different(sizes: dict[int, dict[str, list[int]]]) -> tuple[int, int] | None:
    """Two rows with the same parts, of different sizes."""
    known = list(sizes.items())
    for number, first in known[:1]:
        for other, second in known[1:]:
            if first.keys() == second.keys() and first != second:
                return number, other
    return None


@contextmanager
def _same_random_numbers() -> Iterator[None]:
    numpy = sys.modules.get("numpy")
    before = random.getstate(), torch.get_rng_state(), numpy.random.get_state() if numpy else None
    try:
        yield
    finally:
        random.setstate(before[0])
        torch.set_rng_state(before[1])
        if numpy is not None:
            numpy.random.set_state(before[2])
