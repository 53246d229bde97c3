"""Losses without a gradient: not connected to the parameters, or constant."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnostics import Evidence, Span
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import BackwardLine, GradientsLine

_FLAT = {"Clamp": "clamp", "ClampMin": "clamp_min", "ClampMax": "clamp_max", "Hardtanh": "hardtanh"}


@silent_fault
def _unconnected(observed: Observations) -> Iterator[RuntimeFinding]:
    losses = list(observed.of(BackwardLine))
    for line in observed.of(GradientsLine):
        untrained = line["without_gradient"] and not line["with_gradient"] and line["backward_calls"]
        if not untrained or line["trained_elsewhere"]:
            continue
        fresh = next((each for each in losses if each["connected"] and not each["producers"]), None)
        at = span((fresh or losses[0])["called_at"]) if losses else None
        if at is None:
            continue
        step = _step(line)
        if fresh is not None:
            yield RuntimeFinding(
                "fresh-loss",
                "the loss is a new tensor without a computation graph: no parameter gets a gradient",
                at,
                (Evidence(at, "backward is called on a tensor that no operation computed"), *step),
            )
        else:
            yield RuntimeFinding(
                "unconnected-loss",
                f"none of the {line['without_gradient']} parameters has a gradient when {line['optimizer']} "
                "steps, although backward was called",
                at,
                (Evidence(at, "backward called here"), *step),
            )


@silent_fault
def _zero(observed: Observations) -> Iterator[RuntimeFinding]:
    losses = [each for each in observed.of(BackwardLine) if span(each["called_at"]) is not None]
    if any(each["text"] and each["value"] is None for each in losses) or not losses:
        return
    for line in observed.of(GradientsLine):
        if not line["all_zero"] or line["trained_elsewhere"]:
            continue
        loss = losses[-1]
        at = span(loss["called_at"])
        assert at is not None
        flat = next((_FLAT[name] for name in loss["producers"] if name in _FLAT), None)
        all_of = f"the gradients of all {line['with_gradient']} parameters are exactly 0"
        if flat is not None:
            message = f"the loss is outside the bounds of `{flat}`, where its gradient is 0: {all_of}"
        else:
            message = f"{all_of}: the optimizer step changes nothing"
        value = f", {loss['value']:.4g}," if loss["value"] is not None else ""
        evidence = (Evidence(at, f"backward of the loss{value} called here"), *_step(line))
        yield RuntimeFinding("clamped-loss" if flat else "zero-gradient", message, at, evidence)


def _step(line: GradientsLine) -> Iterator[Evidence]:
    at: Span | None = span(line["called_at"])
    if at is not None:
        yield Evidence(at, f"{line['optimizer']} steps here")
