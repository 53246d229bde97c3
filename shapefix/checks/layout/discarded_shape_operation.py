"""SF105: the unused result of a shape operation."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.idle_results import is_idle
from shapefix.checks.support.unused_results import assigned, is_unused, may_be_rebound, unused_result
from shapefix.diagnostics import Diagnostic
from shapefix.domains.operations import Discarded

_SHAPE_OPERATIONS = frozenset(
    {
        "view",
        "view_as",
        "reshape",
        "reshape_as",
        "flatten",
        "ravel",
        "unflatten",
        "transpose",
        "swapaxes",
        "swapdims",
        "t",
        "permute",
        "movedim",
        "moveaxis",
        "squeeze",
        "unsqueeze",
        "expand",
        "expand_as",
        "broadcast_to",
        "narrow",
        "contiguous",
        "repeat",
        "tile",
        "unfold",
        "flip",
        "roll",
        "adjoint",
    }
)


@rule("SF105", on=Discarded)
def discarded_shape_operation(event: Discarded, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if is_unused(event, _SHAPE_OPERATIONS) and not is_idle(event, context):
        is_rebound = event.name is not None and may_be_rebound(event, context)
        fixes = assigned(event, event.name, context) if is_rebound and event.name else ()
        yield unused_result(event, rule, fixes)
