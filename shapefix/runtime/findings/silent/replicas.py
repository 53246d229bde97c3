"""Training calls of a module in DistributedDataParallel, instead of the wrapper."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Evidence
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import ReplicaBypassedLine


@silent_fault
def _around(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(ReplicaBypassedLine):
        at, created = span(line["called_at"]), span(line["created_at"])
        if at is None:
            continue
        evidence = [Evidence(at, f"calls the `{line['model']}` inside of the wrapper")]
        if created is not None:
            evidence.insert(
                0, Evidence(created, "wrapped here: averages gradients after its own forward only")
            )
        yield RuntimeFinding(
            "forward-outside-ddp",
            f"the `{line['model']}` is called, not the DistributedDataParallel around it: "
            "the processes do not average their gradients",
            at,
            tuple(evidence),
        )
