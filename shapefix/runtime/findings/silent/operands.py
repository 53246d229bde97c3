"""Arithmetic that computes more than was meant: every pair of two rows, or in float64."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Evidence
from shapefix.runtime.findings.silent.registry import Seen, detector
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.report.formatting import sized


@detector
def _crossed(observed: Observations) -> Iterator[Seen]:
    for line in observed.of("crossed"):
        at = span(line["called"])
        if at is not None:
            both = f"{sized(line['left'])} and {sized(line['right'])}"
            sizes = f"({', '.join(map(str, line['result']))})"
            yield Seen(
                "silent-broadcast",
                f"{both} meet on the way to the loss: both are broadcast to {sizes}",
                at,
                (
                    Evidence(
                        at, f"{both}: each of the one meets each of the other, and the loss sums them up"
                    ),
                ),
            )


@detector
def _promoted(observed: Observations) -> Iterator[Seen]:
    for line in observed.of("promoted"):
        at = span(line["called"])
        if at is not None:
            both = f"{sized(line['left'])} and {sized(line['right'])}"
            yield Seen(
                "silent-float64",
                f"{both} meet: what follows is computed in float64",
                at,
                (Evidence(at, both),),
            )
