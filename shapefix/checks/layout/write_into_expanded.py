"""SF104: a write into an expanded tensor."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext, lineage
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.device_placement import is_creation
from shapefix.checks.support.evidence import call_trace, layout_trace
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix
from shapefix.domains.operations import InPlaceWrite
from shapefix.tensors.ops import Op

_ERROR = ExpectedError(
    "RuntimeError", "more than one element of the written-to tensor refers to a single memory location"
)


@rule("SF104", on=InPlaceWrite)
def write_into_expanded(event: InPlaceWrite, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    layout, dim = event.layout, event.shared
    if layout is None or dim is None or event.subject is None:
        return
    module = event.place.module
    condition = context.condition([layout.sizes[dim]])
    target, call = abbreviate(module.code(event.subject)), abbreviate(event.place.code)
    write = f"assigning to `{call}`" if isinstance(event.place.node, cst.Subscript) else f"`{call}`"
    if event.refused:
        message = f"{write} fails: dimension {dim} of `{target}` is expanded"
    else:
        message = f"{write} changes every element along dimension {dim} of `{target}`, which is expanded"
    yield rule.diagnostic(
        event.place.span,
        message,
        evidence=[
            *call_trace(event),
            *layout_trace(event.tensor, context),
            Evidence(
                event.place.span,
                f"written here: the {context.text(layout.sizes[dim])} elements along dimension {dim} "
                "share one memory location",
            ),
        ],
        condition=condition,
        error=_ERROR if event.refused else None,
        fixes=_clone(event, always=condition is None),
    )


def _clone(event: InPlaceWrite, *, always: bool) -> list[Fix]:
    """Clone the expanded tensor; no fix if another file expands it.

    A dimension of size 1 is not expanded: the write then reaches the original, and a clone would stop it. So
    the fix is only safe if torch always refuses the write, or if nothing else has the original.
    """
    for step in lineage(event.tensor):
        if step.op is Op.MESHGRID:
            # The call returns a tuple, which has no clone().
            return []
        if step.op is Op.EXPAND and step.place.module is event.place.module:
            span = step.place.span
            end = span.end()
            message = "clone the expanded tensor to give each element its own memory"
            safe = event.refused and (always or _is_new(step.place.node))
            safety = Applicability.SAFE if safe else Applicability.UNSAFE
            return [Fix(safety, message, (Edit(end, ".clone()"),))]
    return []


def _is_new(expanding: cst.CSTNode) -> bool:
    """Whether a call expands a tensor of its own: `torch.zeros(1, 3).expand(n, 3)`."""
    method = expanding.func if isinstance(expanding, cst.Call) else None
    return isinstance(method, cst.Attribute) and is_creation(method.value)
