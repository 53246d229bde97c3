"""The way to a finding: the calls that led there, and what happened to the tensor."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext, lineage
from shapefix.diagnostics import Evidence
from shapefix.interpreter.events import Event
from shapefix.interpreter.rows import Origin
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.tensors.layout import Layout, is_contiguous

LONGEST = 6
"""A chain of more steps than this tells its last ones."""


def calls(event: Event) -> Iterator[Evidence]:
    """The last calls through which the event was reached, outermost first."""
    for place in event.calls[-3:]:
        yield Evidence(place.span, "called here")


def own_lengths(made: Origin) -> Evidence:
    """Where rows come from that keep their own lengths."""
    return Evidence(made.place.span, f"{made.what}: each row keeps its own length")


def history(tensor: TensorValue, run: CheckContext) -> list[Evidence]:
    """How the tensor got its layout, from the last time that it was contiguous."""
    steps: list[LayoutStep] = []
    for step in lineage(tensor):
        steps.append(step)
        if step.layout is not None and is_contiguous(step.layout):
            break
    evidence = []
    before: Layout | None = None
    for step in reversed(steps[:LONGEST]):
        if step.layout is not None and step.layout != before:
            evidence.append(Evidence(step.place.span, f"{step.text} here: {run.layout(step.layout)}"))
        before = step.layout
    return evidence
