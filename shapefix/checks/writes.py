"""SF104: writing into a tensor whose elements share memory."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.evidence import calls, history, lineage
from shapefix.checks.layout import short
from shapefix.checks.registry import Rule, rule
from shapefix.checks.run import Run
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Severity, Span
from shapefix.interpreter.events import InPlaceWrite
from shapefix.tensors.bounds import same


@rule(
    "SF104",
    "write-into-expanded",
    Severity.ERROR,
    "in-place write into an expanded tensor, several of whose elements are one in memory",
    Applicability.SAFE,
    on=InPlaceWrite,
)
def write_into_expanded(event: InPlaceWrite, run: Run, this: Rule) -> Iterator[Diagnostic]:
    layout = event.tensor.layout
    if layout is None:
        return
    shared = [
        (dim, size)
        for dim, (size, stride) in enumerate(zip(layout.sizes, layout.strides, strict=True))
        if stride.value == 0 and same(size, 1) is not True and size.value != 0
    ]
    if not shared:
        return
    dim, size = shared[0]
    code = short(event.place.code)
    yield this.diagnostic(
        event.place.span,
        f"`{code}` writes into an expanded tensor: along dimension {dim}, of size {run.text(size)}, all elements "
        "are one and the same in memory",
        evidence=[
            *calls(event),
            *history(event.tensor, run),
            Evidence(event.place.span, "written in place here"),
        ],
        condition=run.condition([size]),
        fixes=_clone(event),
    )


def _clone(event: InPlaceWrite) -> list[Fix]:
    for step in lineage(event.tensor):
        if step.verb == "expanded":
            span = step.place.span
            end = Span(span.path, span.end_row, span.end_column, span.end_row, span.end_column)
            message = "clone the expanded tensor, so that each element has memory of its own"
            return [Fix(Applicability.SAFE, message, (Edit(end, ".clone()"),))]
    return []
