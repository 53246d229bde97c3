"""Collectives of several processes."""

from __future__ import annotations

from typing import Literal, TypedDict

from .values import DescribedValue, UserPlace


class CollectiveLine(TypedDict):
    """A collective is called. group has its ranks, None for all; root is the rank it sends from or to."""

    kind: Literal["collective"]
    number: int
    called_at: UserPlace | None
    name: str
    tensor: DescribedValue | None
    root: int | None
    group: list[int] | None


class CollectiveWaitLine(TypedDict):
    """The asynchronous collective of a number is waited for, or over."""

    kind: Literal["collective_wait"]
    number: int
    over: bool


class CollectiveDoneLine(TypedDict):
    """The collective of the same number returned."""

    kind: Literal["collective_done"]
    number: int
