"""The memory of the first training step as a picture: bytes over time, and the phases below each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shapefix.runtime.observations import Observations
from shapefix.runtime.report.formatting import duration, size

_NAMES = {"forward": "forward", "loop": "between", "backward": "backward", "step": "optimizer"}
_OF = {
    "process": "memory of the whole process, with its libraries",
    "cuda": "what PyTorch has allocated on the GPU",
    "fake": "what lives on the GPU that is not there",
}
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 30, 26
_CHARACTER = 7.0


@dataclass(frozen=True)
class Tick:
    """A line of the scale, at a height."""

    y: float
    text: str


@dataclass(frozen=True)
class Phase:
    """A phase of the step: where it is in the picture, its outline, and what the table says of it.

    label is "" where there is no room for it.
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
class Plot:
    """The whole picture, in its own units; of says what was measured, text what it shows."""

    width: int
    height: int
    left: float
    right: float
    top: float
    bottom: float
    of: str
    text: str
    ticks: tuple[Tick, ...]
    phases: tuple[Phase, ...]
    curve: str
    peak_x: float
    peak_y: float
    peak: str
    peak_anchor: str
    seconds: str


def plot(observed: Observations, width: int, height: int) -> Plot | None:
    """The picture in so many units; None where the run came to no backward."""
    lines = [line for line in observed.of("timeline") if line["samples"]]
    samples: list[tuple[float, int]] = [(at, taken) for line in lines for at, taken in line["samples"]]
    if all(line["phase"] != "backward" for line in lines):
        return None
    start, end = samples[0][0], max(samples[-1][0], samples[0][0] + 1e-6)
    of = lines[0]["of"]
    low = min(taken for _, taken in samples) if of == "process" else 0
    high = max(max(taken for _, taken in samples), low + 1)
    left, right, top, bottom = _LEFT, width - _RIGHT, _TOP, height - _BOTTOM

    def x(at: float) -> float:
        return round(left + (at - start) / (end - start) * (right - left), 1)

    def y(taken: int) -> float:
        return round(bottom - (taken - low) / (high - low) * (bottom - top), 1)

    def phases() -> Iterator[Phase]:
        for number, line in enumerate(lines):
            here = line["samples"]
            until = lines[number + 1]["samples"][0][0] if number + 1 < len(lines) else here[-1][0]
            begin, stop = x(here[0][0]), x(until)
            points = [(x(at), y(taken)) for at, taken in here]
            outline = [(begin, bottom), *points, (stop, points[-1][1]), (stop, bottom)]
            name = _NAMES.get(line["phase"], line["phase"])
            most = max(taken for _, taken in here)
            yield Phase(
                name,
                name if (stop - begin) > _CHARACTER * len(name) + 6 else "",
                begin,
                round(max(stop - begin, 0.5), 1),
                " ".join(f"{at},{level}" for at, level in outline),
                duration(until - here[0][0]),
                size(most),
                size(here[0][1]),
            )

    at, most = max(samples, key=lambda sample: sample[1])
    known = tuple(phases())
    told = [f"{each.name} {each.seconds}, up to {each.peak}" for each in known if each.name != _NAMES["loop"]]
    levels = [low, (low + high) // 2, high]
    return Plot(
        width, height, left, right, top, bottom, _OF[of],
        f"{_OF[of]}, over {duration(end - start)}: {'; '.join(told)}",
        tuple(Tick(y(level), size(level)) for level in levels),
        known, " ".join(f"{x(at)},{y(taken)}" for at, taken in samples),
        x(at), y(most), size(most), "end" if x(at) > width / 2 else "start", duration(end - start),
    )  # fmt: skip
