"""The time of a training step in words: its parts, and samples per second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from shapefix.runtime.observations import Observations
from shapefix.runtime.protocol import StepTimesLine
from shapefix.runtime.report.formatting import counted, duration

_OTHER = "other code"


@dataclass(frozen=True)
class StepSpeed:
    """The time of a step in seconds, that of its parts, and its samples per second, None if not known.

    steps is the number of measured steps, without the first one; 0 says that it is the first one.
    """

    seconds: float
    parts: tuple[tuple[str, float], ...]
    rows_per_second: float | None
    steps: int

    @property
    def basis(self) -> str:
        """The measured steps, in words."""
        if not self.steps:
            return "the first step, slower than later ones"
        return "the second step" if self.steps == 1 else f"median of {counted(self.steps, 'step')}"


def step_speed(observed: Observations) -> StepSpeed | None:
    """The speed of the training steps of a run; that of the first step only if there is no other one."""
    lines = list(observed.of(StepTimesLine))
    if not lines:
        return None
    later = [line for line in lines if line["step"] > 1]
    known = later or lines
    seconds = median(line["seconds"] for line in known)
    parts = (
        ("data", median(line["data"] for line in known)),
        ("forward", median(line["forward"] for line in known)),
        ("backward", median(line["backward"] for line in known)),
        ("optimizer", median(line["optimizer"] for line in known)),
    )
    rest = (_OTHER, max(seconds - sum(each for _, each in parts), 0.0))
    return StepSpeed(seconds, (*parts, rest), _rows_per_second(known), len(later))


def _rows_per_second(lines: Sequence[StepTimesLine]) -> float | None:
    known = [line["rows"] / line["seconds"] for line in lines if line["rows"] and line["seconds"]]
    return median(known) if known else None


def speed_text(speed: StepSpeed) -> str:
    """The speed in words: `31.2 ms: data 2.1 ms, …; 513 samples/s (the second step)`."""
    parts = ", ".join(
        f"{name} {duration(seconds)}" for name, seconds in speed.parts if seconds >= speed.seconds / 200
    )
    rate = "" if speed.rows_per_second is None else f"; {speed.rows_per_second:,.0f} samples/s"
    return f"{duration(speed.seconds)}: {parts}{rate} ({speed.basis})"
