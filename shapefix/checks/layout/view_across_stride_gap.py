"""SF101: a view merging dimensions with incompatible strides."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext, lineage, whole_sizes
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.conditions import combined
from shapefix.checks.support.evidence import call_trace, layout_trace
from shapefix.checks.support.rewrites import line_of
from shapefix.checks.support.syntax import enclosing_function
from shapefix.checks.support.torch_errors import STRIDED
from shapefix.checks.support.view_calls import RESHAPES, reshape_instead, viewed_code
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Condition, Diagnostic, Evidence
from shapefix.domains.operations import Viewed
from shapefix.tensors.layout import is_contiguous
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import substitute
from shapefix.tensors.verdicts import Illegal

_KEEPS_STRIDES = frozenset({Op.VIEW, Op.UNFLATTEN, Op.SQUEEZE, Op.UNSQUEEZE})
"""Operations without a gap of their own in the memory of their result."""


@rule("SF101", on=Viewed)
def view_across_stride_gap(event: Viewed, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    verdict = event.verdict
    if event.method not in RESHAPES or not isinstance(verdict, Illegal) or _is_unlikely(event):
        return
    if not event.calls and _needs_other_arguments(event, verdict):
        return
    subject, call = viewed_code(event), abbreviate(event.place.code)
    yield rule.diagnostic(
        event.place.span,
        f"`{call}` fails: `{subject}` is not contiguous{_cause(event)}",
        evidence=[
            *call_trace(event),
            *layout_trace(event.tensor, context),
            Evidence(event.place.span, _merge(event, verdict, context)),
        ],
        condition=_condition(event, verdict, context),
        error=STRIDED,
        fixes=reshape_instead(event, context),
    )


def _condition(event: Viewed, verdict: Illegal, context: CheckContext) -> Condition | None:
    """Return the sizes of a failing view, and the conditions for a conversion before it not to copy."""
    parts = [context.condition(verdict.conditions)]
    for step in lineage(event.tensor):
        if step.layout != event.layout:
            break
        parts.append(Condition(step.condition) if step.condition else None)
    return combined("and", [part for part in parts if part is not None])


def _is_unlikely(event: Viewed) -> bool:
    """Whether the view is in a branch dependent on an argument of the function.

    The tensor and its layout come from the caller. It is not known whether this call takes the branch, and
    code often checks sizes before a view.
    """
    origin = event.tensor.origin
    from_outside = origin is None or origin.function is not event.function
    return event.undecided and bool(event.calls) and from_outside


def _needs_other_arguments(event: Viewed, verdict: Illegal) -> bool:
    """Whether a function without known callers fails only for other arguments than its defaults: `topk=1`."""
    function = enclosing_function(event.place)
    parameters = (*function.params.params, *function.params.kwonly_params) if function is not None else ()
    defaults = {
        each.name.value: int(each.default.value)
        for each in parameters
        if isinstance(each.default, cst.Integer) and each.default.value.isdecimal()
    }
    for size in verdict.conditions:
        used = {symbol: Size.of(defaults[symbol.name]) for symbol in size.symbols if symbol.name in defaults}
        known = substitute(size, used).value if used else None
        if known is not None and known < 2:
            return True
    return False


def _cause(event: Viewed) -> str:
    """Return the operation making the tensor non-contiguous, if on another line."""
    first = None
    for step in lineage(event.tensor):
        if step.layout is None or is_contiguous(step.layout):
            break
        if step.op not in _KEEPS_STRIDES:
            first = step
    module = event.place.module
    if first is None or (first.place.module is module and first.place.span.row == event.place.span.row):
        return ""
    return f" ({first.text} at {line_of(first.place, module)})"


def _merge(event: Viewed, verdict: Illegal, context: CheckContext) -> str:
    """Return the two unmergeable dimensions, with the required and the actual stride."""
    layout, outer, inner = event.layout, verdict.outer, verdict.inner
    merged = f"merges dimensions {outer} and {inner}"
    whole = whole_sizes(layout)
    if whole is not None:
        part = f"{context.text(layout.sizes[inner])} of {context.text(whole[inner])}"
        return f"{merged}, but dimension {inner} is a slice ({part}) and leaves gaps in memory"
    needs, has = context.text(verdict.needs), context.text(verdict.has)
    return f"{merged}: dimension {outer} needs stride {needs} but has {has}"
