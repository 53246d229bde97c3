"""Predict the GPU memory of a training step, the largest fitting batch, and possible savings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from shapefix.diagnostics import Span
from shapefix.runtime.forecast.batch_settings import BatchSetting
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import CallArguments, PeakMemory, StepMemoryLine, TrialAppliedLine

CONTEXT = 512 << 20
"""The approximate bytes of a GPU that CUDA itself and its libraries take."""

_LARGEST, _RUNS, _SEGMENT = 1 << 16, 8, 20 << 20
_STATE = "optimizer state"


@dataclass(frozen=True)
class StepPeak:
    """The peak memory of one training step in bytes: live tensors, and the allocator's reserved memory.

    by_kind are the live bytes by purpose. batch and length are the first two sizes of the first tensor that
    the model gets; calls is how often it is called for one step.
    """

    live: int
    reserved: int
    by_kind: Mapping[str, int]
    phase: str
    module: str | None
    operation: str
    site: Span | None
    batch: int | None
    length: int | None
    calls: int
    trials: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class BatchSearch:
    """The batches tried so far, the largest fitting one, and the smallest one beyond the budget, if any.

    limit is the largest batch that the data allows, if it was reached.
    """

    tried: Mapping[int, StepPeak]
    largest: int | None
    too_large: int | None
    limit: int | None = None


@dataclass(frozen=True)
class MemorySaving:
    """A run with one change or several, their label in reports, the code for them, and the peak.

    setting is that of a size, if the change is another size.
    """

    what: str
    label: str
    peak: StepPeak
    code: str = ""
    setting: BatchSetting | None = None


@dataclass(frozen=True)
class MemoryForecast:
    """The forecast for a GPU with vram bytes."""

    vram: int
    peak: StepPeak
    setting: BatchSetting | None
    fit: BatchSearch | None
    savings: tuple[MemorySaving, ...]

    @property
    def budget(self) -> int:
        """The bytes of the GPU left for PyTorch's allocator."""
        return max(self.vram - CONTEXT, 0)

    @property
    def fits(self) -> bool:
        """Whether a step of the unchanged script fits."""
        return self.peak.reserved <= self.budget


@dataclass(frozen=True)
class FittingChange:
    """A change to make a step fit, the code for it if it is short, and the reserved bytes at most.

    what is `batch` or that of a MemorySaving.
    """

    what: str
    text: str
    code: str
    reserved: int
    setting: BatchSetting | None = None


def fitting_changes(forecast: MemoryForecast) -> Iterator[FittingChange]:
    """The changes to make a step fit, the smallest change first."""
    fit, batch = forecast.fit, forecast.peak.batch
    if forecast.fits:
        return
    if fit is not None and fit.largest is not None and batch is not None:
        size, steps = accumulation(batch, fit.largest)
        text = f"batch {size} and {steps} accumulation steps"
        yield FittingChange("batch", text, "", fit.tried[fit.largest].reserved)
    for saving in forecast.savings:
        if saving.peak.reserved <= forecast.budget:
            reserved = saving.peak.reserved
            yield FittingChange(saving.what, saving.label, saving.code, reserved, saving.setting)


def step_peak(observed: Observations) -> StepPeak | None:
    """The peak of the last recorded training step; None without a step, or without tensors on the GPU."""
    lines = list(observed.of(StepMemoryLine))
    if not lines:
        return None
    last = lines[-1]
    peaks = [peak for name, peak in last["peaks"].items() if name not in ("setup", "evaluation")]
    state = last["totals"].get(_STATE, 0) if len(lines) == 1 else 0
    # Only the first step begins without the optimizer's state.
    whole = [peak if peak["phase"] == "step" else _with_state(peak, state) for peak in peaks]
    top = max(whole, key=lambda peak: int(peak["bytes"]), default=None)
    if top is None or not top["bytes"]:
        return None
    grown = top["bytes"] - max(int(peak["bytes"]) for peak in peaks)
    sizes = _sizes(last["input"])
    return StepPeak(
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
        frozenset(line["what"] for line in observed.of(TrialAppliedLine)),
    )


def search_batch(measure: Callable[[int], StepPeak | None], first: StepPeak, budget: int) -> BatchSearch:
    """Search the largest batch within the memory budget, by interpolating between runs.

    measure runs the script with a batch size, and returns None if that failed. The search ends when the
    bounds are close, or when less than a segment of the allocator is left.
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
    return BatchSearch(dict(sorted(tried.items())), low or None, high, limit)


def _between(tried: Mapping[int, StepPeak], budget: int) -> tuple[int, int | None]:
    """The largest fitting batch, 0 if none fits, and the smallest one beyond the budget."""
    fitting = [size for size, each in tried.items() if each.reserved <= budget]
    over = [size for size, each in tried.items() if each.reserved > budget]
    return max(fitting, default=0), min(over, default=None)


def _guess(tried: Mapping[int, StepPeak], budget: int) -> int:
    """The batch using up the budget, by the line through the live bytes of two batches.

    These are the two around the budget, or the two nearest to it. Live bytes grow linearly, while reserved
    bytes grow by whole segments: the difference between them is assumed to be constant.
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
    """The largest fitting divisor of the effective batch, and the number of accumulation steps."""
    steps = next((n for n in range(1, batch + 1) if batch % n == 0 and batch // n <= largest), batch)
    return batch // steps, steps


def _with_state(peak: PeakMemory, state: int) -> PeakMemory:
    """Add the optimizer's state to a peak."""
    by_kind = dict(peak["by_kind"])
    if state:
        by_kind[_STATE] = by_kind.get(_STATE, 0) + state
    return {**peak, "bytes": peak["bytes"] + state, "by_kind": by_kind}


def _sizes(call: CallArguments | None) -> list[int]:
    """The sizes of the first tensor with dimensions among the arguments of a call."""
    if call is None:
        return []
    waiting = [*call["args"], *call["kwargs"].values()]
    while waiting:
        value = waiting.pop(0)
        if value["kind"] == "tensor" and value["size"]:
            return list(value["size"])
        items = value.get("items") or []
        waiting += items.values() if isinstance(items, Mapping) else items
    return []
