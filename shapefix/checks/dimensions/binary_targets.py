"""SF522: targets outside of 0 and 1 in a binary cross entropy."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace, shape_trace
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, ExpectedError, Fix
from shapefix.domains.losses import LossComputed
from shapefix.interpreter.values import as_tensor

_RAISING = frozenset({"torch.nn.BCELoss", "torch.nn.functional.binary_cross_entropy"})
_SILENT = frozenset({"torch.nn.BCEWithLogitsLoss", "torch.nn.functional.binary_cross_entropy_with_logits"})
_REFUSED = ExpectedError("RuntimeError", "all elements of target should be between 0 and 1")


@rule("SF522", on=LossComputed)
def binary_targets(event: LossComputed, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    target = as_tensor(event.given.get("target"))
    if event.function not in _RAISING | _SILENT or target is None or target.extremes is None:
        return
    least, most = target.extremes.least.value, target.extremes.most.value
    if least is None or most is None or target.storage.is_written or (least >= 0 and most <= 1):
        return
    loss = event.function.rpartition(".")[2]
    held = f"the targets are from {least} to {most}" if least < most else f"the targets are {least}"
    advice = "shift them to 0 and 1" if most - least == 1 or (least, most) == (-1, 1) else _OTHER_LOSS
    yield rule.diagnostic(
        event.place.span,
        f"`{loss}` gets targets outside of 0 and 1: {held}",
        evidence=[
            *call_trace(event),
            *shape_trace(target, context),
            Evidence(
                event.place.span, f"{held}; the loss takes probabilities, and falls below 0 with others"
            ),
        ],
        error=_REFUSED if event.function in _RAISING else None,
        fixes=[Fix(Applicability.DISPLAY, advice, ())],
    )


_OTHER_LOSS = "for classes, use a cross entropy with one score each; for a measure, a loss such as MSELoss"
