"""Samples of distributions, without a gradient for the parameters of the distribution."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Evidence
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import SampleCutLine


@silent_fault
def _cut(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(SampleCutLine):
        at = span(line["called_at"])
        if at is None:
            continue
        names = ", ".join(f"`{name}`" for name in line["parameters"])
        more = (
            f" and {line['count'] - len(line['parameters'])} more"
            if line["count"] > len(line["parameters"])
            else ""
        )
        yield RuntimeFinding(
            "cut-gradient",
            f"`{line['distribution']}.sample()` has no gradient: {names}{more} get none; `rsample()` has one",
            at,
            (Evidence(at, "sampled here, and the loss is computed from it"),),
        )
