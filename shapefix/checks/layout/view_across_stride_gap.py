"""SF101: a view that merges dimensions with incompatible strides."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext, whole_sizes
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace, layout_trace
from shapefix.checks.support.view_calls import RESHAPES, reshape_instead, viewed_code
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Diagnostic, Evidence
from shapefix.domains.operations import Viewed
from shapefix.tensors.verdicts import Illegal


@rule("SF101", on=Viewed)
def view_across_stride_gap(event: Viewed, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    verdict = event.verdict
    if event.method not in RESHAPES or not isinstance(verdict, Illegal) or _is_unlikely(event):
        return
    subject, call = viewed_code(event), abbreviate(event.place.code)
    dims = f"dimensions {verdict.dim} and {verdict.dim + 1}"
    gap, merge = _gap(event, verdict, context)
    yield rule.diagnostic(
        event.place.span,
        f"`{call}` merges {dims} of `{subject}`, but {gap}",
        evidence=[
            *call_trace(event),
            *layout_trace(event.tensor, context),
            Evidence(event.place.span, f"merges {dims} here: {merge}"),
        ],
        condition=context.condition(verdict.conditions),
        fixes=reshape_instead(event, context),
    )


def _is_unlikely(event: Viewed) -> bool:
    """Whether the view stands in a branch that looks at what the function was handed.

    The layout came in from outside, through this call; whether the branch is taken in this call nobody knows,
    and people do ask for sizes before they view.
    """
    origin = event.tensor.origin
    from_outside = origin is None or origin.function is not event.function
    return event.undecided and bool(event.calls) and from_outside


def _gap(event: Viewed, verdict: Illegal, context: CheckContext) -> tuple[str, str]:
    """Why the two dimensions cannot be merged: for the message, and at the merge itself."""
    layout = event.layout
    whole = whole_sizes(layout)
    if whole is not None:
        inner = verdict.dim + 1
        part = f"{context.text(layout.sizes[inner])} of {context.text(whole[inner])}"
        return (
            f"dimension {inner} is a slice ({part}), which leaves a gap after each run of it",
            f"what the slice left out ({part} are there) lies in between",
        )
    has, needs = context.text(verdict.has), context.text(verdict.needs)
    return (
        f"their strides have a gap: {needs} is needed, {has} is there",
        f"dimension {verdict.dim} needs stride {needs}, and has {has}",
    )
