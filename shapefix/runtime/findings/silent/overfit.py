"""A model that does not learn one batch by heart."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Evidence
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import BackwardLine, OverfitLine
from shapefix.runtime.report.formatting import listed

_LEAST_STEPS, _FALL, _LAST = 10, 0.05, 3


def loss_values(observed: Observations) -> list[BackwardLine]:
    """The finite losses of the place of the first backward."""
    first = observed.first(BackwardLine)
    if first is None:
        return []
    return [each for each in observed.of(BackwardLine) if each["called_at"] == first["called_at"]]


def first_and_last(observed: Observations) -> tuple[float, float] | None:
    """The first loss, and the mean of the last ones; None without two finite losses."""
    values = [each["value"] for each in loss_values(observed) if each["value"] is not None]
    if len(values) < 2:
        return None
    last = values[-_LAST:]
    return values[0], sum(last) / len(last)


@silent_fault
def _no_overfit(observed: Observations) -> Iterator[RuntimeFinding]:
    line, losses = observed.first(OverfitLine), loss_values(observed)
    places = {str(each["called_at"]) for each in observed.of(BackwardLine)}
    found = first_and_last(observed)
    if (
        line is None
        or found is None
        or len(places) > 1
        or line["steps"] < _LEAST_STEPS
        or not line["same_input"]
    ):
        return
    first, last = found
    at = span(losses[0]["called_at"])
    if at is None or first - last >= _FALL * abs(first):
        return
    rate = f", lr {line['learning_rate']:g}" if line["learning_rate"] is not None else ""
    unchanged = line["unchanged"]
    stuck = f"; unchanged: {listed([each or '?' for each in unchanged])}" if unchanged else ""
    yield RuntimeFinding(
        "no-overfit",
        f"the loss does not fall in {line['steps']} steps on one batch: {first:.4g} -> {last:.4g}{stuck}",
        at,
        (Evidence(at, f"backward of the loss called here{rate}"),),
    )
