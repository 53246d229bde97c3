"""SF102: a view of a layout known only at run time."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext, lineage
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.torch_errors import STRIDED
from shapefix.checks.support.view_calls import RESHAPES, reshape_instead, viewed_code
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Condition, Diagnostic, Evidence
from shapefix.domains.operations import Viewed
from shapefix.tensors.layout import has_unknown_strides
from shapefix.tensors.ops import NORMALIZATIONS, SOFTMAXES, Op
from shapefix.tensors.verdicts import Undecided


@rule("SF102", on=Viewed)
def view_of_runtime_layout(event: Viewed, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    verdict = event.verdict
    if event.method not in RESHAPES or not isinstance(verdict, Undecided):
        return
    # Only merging dimensions depends on strides, and it reduces their number.
    if not has_unknown_strides(event.layout) or len(event.target) >= event.layout.rank:
        return
    origin = None
    for step in lineage(event.tensor):
        if step.layout is None or has_unknown_strides(step.layout):
            origin = step
    reason = _RUNTIME_LAYOUTS.get(origin.op) if origin is not None else None
    if origin is None or reason is None:
        return
    subject, call = viewed_code(event), abbreviate(event.place.code)
    yield rule.diagnostic(
        event.place.span,
        f"`{call}` may fail: the strides of `{subject}` depend on {reason}",
        evidence=[
            *call_trace(event),
            Evidence(origin.place.span, f"{origin.text} here; the strides depend on {reason}"),
            Evidence(event.place.span, "merges dimensions here"),
        ],
        error=STRIDED,
        condition=Condition(f"`{subject}` is not contiguous at run time in the merged dimensions"),
        fixes=reshape_instead(event, context),
    )


_RUNTIME_LAYOUTS = {
    Op.MODULE_CALL: "what the module returns",
    Op.ATTENTION: "the attention backend",
    Op.CONVOLUTION: "the memory format of input and weight",
    **dict.fromkeys(
        (Op.POOLING, Op.INTERPOLATE, Op.IMAGE_RESIZE, Op.NORMALIZE, *SOFTMAXES, *NORMALIZATIONS),
        "the memory format of the input",
    ),
}
