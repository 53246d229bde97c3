"""Loaders with workers in new interpreters: whether they would start, although the probe runs without."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Evidence
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import WorkersRefusedLine


@silent_fault
def _workers(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(WorkersRefusedLine):
        loader = observed.loaders.get(line["loader"])
        at = span(line["requested_at"])
        if loader is None or at is None:
            continue
        made = span(loader["created_at"])
        how = f"each worker is a new interpreter ({line['method']})"
        if line["part"] is None:
            message = f'{how} and would run this script again: RuntimeError; use `if __name__ == "__main__":`'
            shown = "workers would start here, outside of any function and condition"
        else:
            message = f"{how} and cannot get `{line['part']}`: {line['type']}: {line['message']}"
            shown = "workers would start here"
        evidence = [Evidence(at, shown)]
        if made is not None and made != at:
            evidence.insert(0, Evidence(made, f"created with num_workers={loader['workers']}"))
        yield RuntimeFinding("unstartable-workers", message, at, tuple(evidence))
