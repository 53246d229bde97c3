"""How much memory a training step takes on a GPU, what batch fits into it, and what would save how much."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shapefix.diagnostics import Span
from shapefix.runtime.forecast.batch_settings import Knob
from shapefix.runtime.observations import Observations, span

CONTEXT = 512 << 20
"""Bytes that CUDA itself and its libraries take of a GPU, outside of PyTorch's allocator; about."""

_LARGEST, _RUNS, _SEGMENT = 1 << 16, 8, 20 << 20
_STATE = "optimizer state"


@dataclass(frozen=True)
class Measured:
    """The peak of one training step, in bytes: of what lives, and of what the allocator has reserved for it.

    parts are what lives at the peak, by what it is for; batch and length are the first two sizes of the first
    tensor that the model is given, calls how often it is called for one step.
    """

    live: int
    reserved: int
    parts: Mapping[str, int]
    phase: str
    module: str | None
    operation: str
    site: Span | None
    batch: int | None
    length: int | None
    calls: int
    trials: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Fit:
    """The batches that were tried: the largest that fits, the smallest that does not, as far as there are.

    limit is the batch that the data ends at, None where it did not come to that.
    """

    tried: Mapping[int, Measured]
    largest: int | None
    too_large: int | None
    limit: int | None = None


@dataclass(frozen=True)
class Saving:
    """A run with one thing changed: what, how to say it to a person, and its peak."""

    what: str
    how: str
    peak: Measured


@dataclass(frozen=True)
class Forecast:
    """All that is foretold for a GPU with so many bytes."""

    vram: int
    peak: Measured
    knob: Knob | None
    fit: Fit | None
    savings: tuple[Saving, ...]

    @property
    def budget(self) -> int:
        """What is left of the GPU for PyTorch's allocator."""
        return max(self.vram - CONTEXT, 0)

    @property
    def fits(self) -> bool:
        """Whether a step fits as the script is."""
        return self.peak.reserved <= self.budget


def measured(observed: Observations) -> Measured | None:
    """The peak of the last training step that was counted; None where none was, or nothing was on the GPU."""
    lines = list(observed.of("memory"))
    if not lines:
        return None
    last = lines[-1]
    peaks = [peak for name, peak in last["peaks"].items() if name not in ("setup", "evaluation")]
    state = last["totals"].get(_STATE, 0) if len(lines) == 1 else 0
    # The first step begins without the optimizer's state, every other with it.
    whole = [peak if peak["phase"] == "step" else _with(peak, state) for peak in peaks]
    top = max(whole, key=lambda peak: int(peak["bytes"]), default=None)
    if top is None or not top["bytes"]:
        return None
    grown = top["bytes"] - max(int(peak["bytes"]) for peak in peaks)
    sizes = _sizes(last["input"])
    return Measured(
        top["bytes"],
        last["reserved"] + grown,
        top["by_kind"],
        top["phase"],
        top["module"],
        top["operation"],
        span(top["site"]),
        sizes[0] if sizes else None,
        sizes[1] if len(sizes) > 1 else None,
        last["calls"],
        frozenset(line["what"] for line in observed.of("trial")),
    )


def search(measure: Callable[[int], Measured | None], first: Measured, budget: int) -> Fit:
    """The largest batch whose step reserves no more than the budget, by a few runs and lines between them.

    measure runs the script with a batch; None where that failed. Ends where what fits and what does not are
    near, or where no more than a segment of the allocator is left.
    """
    assert first.batch is not None
    tried = {first.batch: first}
    limit: int | None = None
    sides: list[bool] = []
    for _ in range(_RUNS):
        low, high = _between(tried, budget)
        top = high or (limit + 1 if limit else _LARGEST)
        step = max(low // 32, 1)
        if top - low <= step or (low and high and budget - tried[low].reserved < _SEGMENT):
            break
        if high and len(sides) > 2 and sides[-1] == sides[-2] == sides[-3]:
            guess = (low + high) // 2
        else:
            guess = min(max(_guess(tried, budget), low + step), top - min(step, top - low - 1))
        known = measure(guess)
        if known is None:
            break
        if known.batch is not None and known.batch < guess:
            guess = limit = known.batch
            if limit in tried:
                break
        tried[guess] = known
        sides.append(known.reserved <= budget)
    low, high = _between(tried, budget)
    return Fit(dict(sorted(tried.items())), low or None, high, limit)


def _between(tried: Mapping[int, Measured], budget: int) -> tuple[int, int | None]:
    """The largest batch that fits, 0 where none does, and the smallest that does not."""
    fitting = [size for size, each in tried.items() if each.reserved <= budget]
    over = [size for size, each in tried.items() if each.reserved > budget]
    return max(fitting, default=0), min(over, default=None)


def _guess(tried: Mapping[int, Measured], budget: int) -> int:
    """The batch at which the budget is used up, by the line through the live bytes of two that were tried.

    These are the two around the budget, or the two nearest to it. What lives grows in proportion, while what
    is reserved grows by whole segments: what it is more is taken to stay the same.
    """
    low, high = _between(tried, budget)
    near = [low, high] if low and high else sorted(tried, reverse=bool(low))[:2]
    best = tried[near[0]]
    if len(near) > 1:
        slope = (tried[near[1]].live - best.live) / (near[1] - near[0])
        if slope > 0:
            return int(near[0] + (budget - best.reserved) / slope)
    return near[0] * 4 if low else max(near[0] // 2, 1)


def accumulation(batch: int, largest: int) -> tuple[int, int]:
    """A batch that fits, and how many of them make up the effective one: the fewest without a rest."""
    steps = next((n for n in range(1, batch + 1) if batch % n == 0 and batch // n <= largest), batch)
    return batch // steps, steps


def _with(peak: Mapping[str, Any], state: int) -> Mapping[str, Any]:
    parts = dict(peak["by_kind"])
    if state:
        parts[_STATE] = parts.get(_STATE, 0) + state
    return {**peak, "bytes": peak["bytes"] + state, "by_kind": parts}


def _sizes(call: Mapping[str, Any] | None) -> list[int]:
    """The sizes of the first tensor with any among the arguments of a call."""
    if call is None:
        return []
    waiting = [*call["args"], *call["kwargs"].values()]
    while waiting:
        value = waiting.pop(0)
        if value["is"] == "tensor" and value["size"]:
            return list(value["size"])
        items = value.get("items") or []
        waiting += items.values() if isinstance(items, Mapping) else items
    return []
