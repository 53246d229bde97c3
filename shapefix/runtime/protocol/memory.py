"""Memory of a training step, and trials on a simulated GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from .values import CallArguments, UserPlace


class MemoryTimelineLine(TypedDict):
    """Memory during one phase of the first training step: pairs of seconds and bytes."""

    kind: Literal["memory_timeline"]
    source: Literal["fake", "cuda", "process"]
    phase: str
    samples: Sequence[tuple[float, int]]


class PeakMemory(TypedDict):
    """The moment of most living memory in a phase; by_kind has the bytes by purpose."""

    bytes: int
    by_kind: dict[str, int]
    phase: str
    module: str | None
    operation: str
    site: UserPlace | None


class StepMemoryLine(TypedDict):
    """The memory of one training step on a simulated GPU: peaks by phase, and the memory alive after it."""

    kind: Literal["step_memory"]
    step: int
    peaks: dict[str, PeakMemory]
    totals: dict[str, int]
    reserved: int
    calls: int
    input: CallArguments | None


class TrialAppliedLine(TypedDict):
    """The setting of a trial was applied."""

    kind: Literal["trial_applied"]
    what: Literal["checkpointing", "bf16", "lora"]
