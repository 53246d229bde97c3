"""Arithmetic with unintended results: outer broadcasts before a loss, and promotion to float64."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Evidence
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import Float64PromotionLine, OuterBroadcastLine
from shapefix.runtime.report.formatting import dtype_and_size


@silent_fault
def _outer_broadcast(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(OuterBroadcastLine):
        at = span(line["called_at"])
        if at is not None:
            both = f"{dtype_and_size(line['left'])} and {dtype_and_size(line['right'])}"
            sizes = f"({', '.join(map(str, line['result']))})"
            yield RuntimeFinding(
                "silent-broadcast",
                f"{both} are combined before the loss: both are broadcast to {sizes}",
                at,
                (Evidence(at, f"{both}: every pair of their elements"),),
            )


@silent_fault
def _float64(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(Float64PromotionLine):
        at = span(line["called_at"])
        if at is not None:
            both = f"{dtype_and_size(line['left'])} and {dtype_and_size(line['right'])}"
            yield RuntimeFinding(
                "silent-float64",
                f"{both} are combined: the result, and everything computed from it, is float64",
                at,
                (Evidence(at, both),),
            )
