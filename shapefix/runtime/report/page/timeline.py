"""A plot of memory during the first training step, by phase."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shapefix.runtime.observations import Observations
from shapefix.runtime.protocol import MemoryTimelineLine
from shapefix.runtime.report.formatting import byte_size, duration

_NAMES = {"forward": "forward", "loop": "between", "backward": "backward", "step": "optimizer"}
_SOURCES = {
    "process": "memory of the whole process, including libraries",
    "cuda": "memory allocated by PyTorch on the GPU",
    "fake": "live memory on the simulated GPU",
}
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 30, 26
_CHARACTER = 7.0


@dataclass(frozen=True)
class PlotTick:
    """A line of the scale, at a height."""

    y: float
    text: str


@dataclass(frozen=True)
class PlotPhase:
    """A phase of the step: its position in the plot, its outline, and its row in the table.

    label is empty if there is no space for it.
    """

    name: str
    label: str
    x: float
    width: float
    outline: str
    seconds: str
    peak: str
    before: str


@dataclass(frozen=True)
class MemoryPlot:
    """The whole plot, in its own units; source is the measured quantity, text describes the plot."""

    width: int
    height: int
    left: float
    right: float
    top: float
    bottom: float
    source: str
    text: str
    ticks: tuple[PlotTick, ...]
    phases: tuple[PlotPhase, ...]
    curve: str
    peak_x: float
    peak_y: float
    peak: str
    peak_anchor: str
    seconds: str


def memory_plot(observed: Observations, width: int, height: int) -> MemoryPlot | None:
    """The plot of a run; None if the run did not reach a backward."""
    lines = [line for line in observed.of(MemoryTimelineLine) if line["samples"]]
    samples: list[tuple[float, int]] = [(at, taken) for line in lines for at, taken in line["samples"]]
    if all(line["phase"] != "backward" for line in lines):
        return None
    start, end = samples[0][0], max(samples[-1][0], samples[0][0] + 1e-6)
    source = lines[0]["source"]
    low = min(taken for _, taken in samples) if source == "process" else 0
    high = max(max(taken for _, taken in samples), low + 1)
    left, right, top, bottom = _LEFT, width - _RIGHT, _TOP, height - _BOTTOM

    def x(at: float) -> float:
        return round(left + (at - start) / (end - start) * (right - left), 1)

    def y(taken: int) -> float:
        return round(bottom - (taken - low) / (high - low) * (bottom - top), 1)

    def phases() -> Iterator[PlotPhase]:
        for number, line in enumerate(lines):
            here = line["samples"]
            until = lines[number + 1]["samples"][0][0] if number + 1 < len(lines) else here[-1][0]
            begin, stop = x(here[0][0]), x(until)
            points = [(x(at), y(taken)) for at, taken in here]
            outline = [(begin, bottom), *points, (stop, points[-1][1]), (stop, bottom)]
            name = _NAMES.get(line["phase"], line["phase"])
            most = max(taken for _, taken in here)
            yield PlotPhase(
                name,
                name if (stop - begin) > _CHARACTER * len(name) + 6 else "",
                begin,
                round(max(stop - begin, 0.5), 1),
                " ".join(f"{at},{level}" for at, level in outline),
                duration(until - here[0][0]),
                byte_size(most),
                byte_size(here[0][1]),
            )

    at, most = max(samples, key=lambda sample: sample[1])
    known = tuple(phases())
    parts = [
        f"{each.name} {each.seconds}, up to {each.peak}" for each in known if each.name != _NAMES["loop"]
    ]
    levels = [low, (low + high) // 2, high]
    return MemoryPlot(
        width, height, left, right, top, bottom, _SOURCES[source],
        f"{_SOURCES[source]}, over {duration(end - start)}: {'; '.join(parts)}",
        tuple(PlotTick(y(level), byte_size(level)) for level in levels),
        known, " ".join(f"{x(at)},{y(taken)}" for at, taken in samples),
        x(at), y(most), byte_size(most), "end" if x(at) > width / 2 else "start", duration(end - start),
    )  # fmt: skip
