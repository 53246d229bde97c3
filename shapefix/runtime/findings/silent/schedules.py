"""Schedules of the learning rate in another unit than the calls of `step`."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Evidence
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import ScheduleUnitLine


@silent_fault
def _units(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(ScheduleUnitLine):
        at = span(line["called_at"])
        if at is None:
            continue
        given = f"`{line['scheduler']}` with {line['setting']}={line['value']:g}"
        if line["unit"] == "epochs":
            message = (
                f"{given} steps once per batch, but an epoch has {line['batches']} batches: it is in epochs"
            )
        else:
            message = f"{given} steps once per epoch of {line['batches']} batches, but it is in batches"
        yield RuntimeFinding("schedule-unit", message, at, (Evidence(at, "the schedule steps here"),))
