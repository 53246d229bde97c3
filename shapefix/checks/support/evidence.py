"""Evidence of findings: call chains, and the steps leading to a tensor's layout and sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from shapefix.checks.context import CheckContext, lineage
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Evidence, Role
from shapefix.domains.raggedness import Origin
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.interpreter.values import LibraryObject, Value
from shapefix.tensors.layout import Layout, is_contiguous
from shapefix.tensors.ops import Op

_CALL = 32
"""The maximum length of a call's code, above which its arguments are omitted."""
LONGEST = 6
"""The maximum number of steps shown; of longer chains, the last ones."""


def call_trace(event: Event) -> Iterator[Evidence]:
    """Yield the calls on the way to the event, outermost first."""
    for place in event.calls:
        yield Evidence(place.span, "called here", Role.CALL, _call_code(place))


def _call_code(place: Place) -> str:
    """Return the code of a call in one line, with `(…)` for long arguments: `model(images)`."""
    code = " ".join(place.code.split())
    if len(code) <= _CALL or not isinstance(place.node, cst.Call):
        return abbreviate(code, _CALL)
    return f"{abbreviate(place.module.code(place.node.func), _CALL)}(…)"


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
            message = f"{step.text} here: {context.layout(step.layout)}"
            contiguous = "" if is_contiguous(step.layout) else ", not contiguous"
            label = f"{step.text}: {_brackets(step.layout, context)}{contiguous}"
            evidence.append(Evidence(step.place.span, message, Role.HISTORY, label))
        before = step.layout
    return _with_producer(evidence)


def _with_producer(steps: list[Evidence]) -> list[Evidence]:
    """Make the last step the producer."""
    return [*steps[:-1], *(replace(step, role=Role.PRODUCER) for step in steps[-1:])]


def _brackets(layout: Layout, context: CheckContext) -> str:
    return f"[{', '.join(map(context.concrete, layout.sizes))}]"


def shape_trace(tensor: TensorValue, context: CheckContext) -> list[Evidence]:
    """Return the last size-changing steps of the tensor, in their order."""
    steps: list[LayoutStep] = []
    step = tensor.origin
    while step is not None and len(steps) < 40:
        steps.append(step)
        step = step.source
    found: list[Evidence] = []
    before: Layout | None = None
    for step in reversed(steps):
        layout = step.layout
        if layout is not None and (before is None or layout.sizes != before.sizes):
            producer = f" by `{layer_code(step.producer)}`" if layer_code(step.producer) else ""
            message = f"{step.text}{producer} here: {context.shape(layout.sizes)}"
            label = _brackets(layout, context)
            if before is not None and step.op is not Op.COLLATE:
                label = f"{_brackets(before, context)} -> {label}"
            found.append(Evidence(step.place.span, message, Role.HISTORY, label))
        before = layout
    return _with_producer(found[-LONGEST:])


def layer_code(layer: Value | None) -> str:
    """Return the code creating a layer, `nn.Linear(271, 256)`; empty if it is not known."""
    if not isinstance(layer, LibraryObject) or layer.place is None:
        return ""
    return abbreviate(layer.place.code)


def made_at(layer: Value | None, label: str = "") -> Iterator[Evidence]:
    """Yield the construction of a layer; without a label, the short report does not show it."""
    if isinstance(layer, LibraryObject) and layer.place is not None:
        message = f"`{abbreviate(layer.place.code)}` created here"
        yield Evidence(layer.place.span, message, Role.CAUSE if label else Role.HISTORY, label)
