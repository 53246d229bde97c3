"""SF104: writing into a tensor whose elements share memory."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext, lineage
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace, layout_trace
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Span
from shapefix.domains.operations import InPlaceWrite
from shapefix.tensors.ops import Op


@rule("SF104", on=InPlaceWrite)
def write_into_expanded(event: InPlaceWrite, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    layout, dim = event.layout, event.shared
    if layout is None or dim is None or event.subject is None:
        return
    module = event.place.module
    target = abbreviate(module.code(event.subject))
    outcome = "torch refuses it" if event.refused else "the write is seen in every element along it"
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` writes into `{target}`, whose dimension {dim} is expanded: "
        f"{outcome}",
        evidence=[
            *call_trace(event),
            *layout_trace(event.tensor, context),
            Evidence(
                event.place.span,
                f"written to here: all {context.text(layout.sizes[dim])} elements along dimension {dim} "
                "are one in memory",
            ),
        ],
        condition=context.condition([layout.sizes[dim]]),
        fixes=_clone(event),
    )


def _clone(event: InPlaceWrite) -> list[Fix]:
    """Memory of its own for each element; no fix where the tensor was expanded in another file."""
    for step in lineage(event.tensor):
        if step.op is Op.EXPAND and step.place.module is event.place.module:
            span = step.place.span
            end = Span(span.path, span.end_row, span.end_column, span.end_row, span.end_column)
            message = "clone the expanded tensor, so that each element has memory of its own"
            safety = Applicability.SAFE if event.refused else Applicability.UNSAFE
            return [Fix(safety, message, (Edit(end, ".clone()"),))]
    return []
