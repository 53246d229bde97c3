"""Evidence of findings: call chains, and the steps leading to a tensor's layout and sizes."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext, lineage
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Evidence
from shapefix.domains.raggedness import Origin
from shapefix.interpreter.events import Event, OpRejected
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.interpreter.values import LibraryObject, Value
from shapefix.tensors.layout import Layout, is_contiguous

LONGEST = 6
"""The maximum number of steps shown; of longer chains, the last ones."""


def call_trace(event: Event) -> Iterator[Evidence]:
    """Yield the last calls on the way to the event, outermost first."""
    for place in event.calls[-3:]:
        yield Evidence(place.span, "called here")


def own_lengths(made: Origin) -> Evidence:
    """Return the place creating rows of different lengths."""
    return Evidence(made.place.span, f"{made.what}: rows keep different lengths")


def layout_trace(tensor: TensorValue, context: CheckContext) -> list[Evidence]:
    """Return the steps leading to the tensor's layout, from its last contiguous one."""
    steps: list[LayoutStep] = []
    for step in lineage(tensor):
        steps.append(step)
        if step.layout is not None and is_contiguous(step.layout):
            break
    evidence = []
    before: Layout | None = None
    for step in reversed(steps[:LONGEST]):
        if step.layout is not None and step.layout != before:
            evidence.append(Evidence(step.place.span, f"{step.text} here: {context.layout(step.layout)}"))
        before = step.layout
    return evidence


def shape_trace(tensor: TensorValue, context: CheckContext) -> list[Evidence]:
    """Return the last size-changing steps of the tensor, in their order."""
    steps: list[LayoutStep] = []
    step = tensor.origin
    while step is not None and len(steps) < 40:
        steps.append(step)
        step = step.source
    found: list[Evidence] = []
    before: object = None
    for step in reversed(steps):
        sizes = None if step.layout is None else step.layout.sizes
        if sizes is not None and sizes != before:
            producer = f" by `{layer_code(step.producer)}`" if layer_code(step.producer) else ""
            found.append(Evidence(step.place.span, f"{step.text}{producer} here: {context.shape(sizes)}"))
        before = sizes
    return found[-LONGEST:]


def layer_trace(event: OpRejected, context: CheckContext) -> list[Evidence]:
    """Return the calls leading to a layer, its construction, and the steps to its input size."""
    came = shape_trace(event.operands[0].tensor, context) if event.operands else []
    return [*call_trace(event), *made_at(event.layer), *came]


def layer_code(layer: Value | None) -> str:
    """Return the code creating a layer, `nn.Linear(271, 256)`; empty if it is not known."""
    if not isinstance(layer, LibraryObject) or layer.place is None:
        return ""
    return abbreviate(layer.place.code)


def made_at(layer: Value | None) -> Iterator[Evidence]:
    """Yield the construction of a layer."""
    if isinstance(layer, LibraryObject) and layer.place is not None:
        yield Evidence(layer.place.span, f"`{abbreviate(layer.place.code)}` created here")
