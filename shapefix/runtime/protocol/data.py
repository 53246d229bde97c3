"""Loaders, batches and rows."""

from __future__ import annotations

from typing import Literal, TypedDict

from .values import DescribedValue, UserPlace


class Collator(TypedDict):
    """The collate function of a loader; file and row for the user's own."""

    name: str
    module: str
    file: str | None
    row: int | None


class LoaderLine(TypedDict):
    """A DataLoader was constructed."""

    kind: Literal["loader"]
    id: int
    created_at: UserPlace | None
    workers: int
    batch_size: int | None
    dataset: str
    length: int | None
    collate: Collator


class WorkersRefusedLine(TypedDict):
    """The workers of a loader would not start in new interpreters.

    method is how they start; part is the argument of the loader that cannot be pickled, None if the workers
    would run the script again.
    """

    kind: Literal["workers_refused"]
    loader: int
    method: str
    part: str | None
    requested_at: UserPlace | None
    type: str
    message: str


class BatchLine(TypedDict):
    """One of the first batches of a loader; number counts from 1."""

    kind: Literal["batch"]
    loader: int
    number: int
    value: DescribedValue
    requested_at: UserPlace | None


class SampledRowsLine(TypedDict):
    """Sizes of some rows of a loader's dataset, by part; pair names two rows of different sizes."""

    kind: Literal["sampled_rows"]
    loader: int
    total: int
    numbers: list[int]
    sizes: dict[str, list[list[int] | None]]
    pair: list[int] | None


class ExtraBatchLine(TypedDict):
    """The script gets a batch after the wanted steps: the next one, the last one, or that of a later pass.

    skipped are the batches before it that the script did not get; rows is the size in dimension 0 of all
    its tensors, usual_rows that of the first batch.
    """

    kind: Literal["extra_batch"]
    loader: int
    which: Literal["next", "last", "pass"]
    skipped: int
    rows: int | None
    usual_rows: int | None
    value: DescribedValue


class ExtraBatchDoneLine(TypedDict):
    """The script is done with the extra batch of a loader."""

    kind: Literal["extra_batch_done"]
    loader: int
