"""A loss that the parameters do not feel: not connected to them, or without a slope."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shapefix.diagnostics import Evidence, Span
from shapefix.runtime.findings.silent.registry import Seen, detector
from shapefix.runtime.observations import Observations, span

_FLAT = {"Clamp": "clamp", "ClampMin": "clamp_min", "ClampMax": "clamp_max", "Hardtanh": "hardtanh"}


@detector
def _unconnected(observed: Observations) -> Iterator[Seen]:
    losses = list(observed.of("backward"))
    for line in observed.of("gradients"):
        if line["given"] or not line["without"] or line["elsewhere"] or not line["backwards"]:
            continue
        fresh = next((each for each in losses if each["connected"] and not each["made"]), None)
        at = span((fresh or losses[0])["called"]) if losses else None
        if at is None:
            continue
        step = _step(line)
        if fresh is not None:
            yield Seen(
                "fresh-loss",
                "the loss is a new tensor, which nothing was computed from: no parameter gets a gradient",
                at,
                (Evidence(at, "backward of a tensor that no operation has made"), *step),
            )
        else:
            yield Seen(
                "unconnected-loss",
                f"backward was called, and none of the {line['without']} parameters has a gradient "
                f"when {line['optimizer']} makes its step",
                at,
                (Evidence(at, "backward is called here"), *step),
            )


@detector
def _zero(observed: Observations) -> Iterator[Seen]:
    losses = [each for each in observed.of("backward") if span(each["called"]) is not None]
    if any(each["text"] and each["value"] is None for each in losses) or not losses:
        return
    for line in observed.of("gradients"):
        if not line["zero"] or line["elsewhere"]:
            continue
        loss = losses[-1]
        at = span(loss["called"])
        assert at is not None
        flat = next((_FLAT[name] for name in loss["made"] if name in _FLAT), None)
        all_of = f"the gradients of all {line['given']} parameters are exactly 0"
        if flat is not None:
            message = f"the loss went through `{flat}`, which has no slope outside of its bounds: {all_of}"
        else:
            message = f"{all_of}: the step changes nothing"
        value = f", {loss['value']:.4g}," if loss["value"] is not None else ""
        evidence = (Evidence(at, f"backward of the loss{value} is called here"), *_step(line))
        yield Seen("clamped-loss" if flat else "zero-gradient", message, at, evidence)


def _step(line: Mapping[str, Any]) -> Iterator[Evidence]:
    at: Span | None = span(line["called"])
    if at is not None:
        yield Evidence(at, f"{line['optimizer']} makes a step here")
