"""Arithmetic with unintended results: outer broadcasts before a loss, and promotion to float64."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from shapefix.diagnostics import Evidence, Fix, Span
from shapefix.runtime.findings.constructor_fixes import ReadText
from shapefix.runtime.findings.operand_fixes import converted_side
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import Float64PromotionLine, OuterBroadcastLine
from shapefix.runtime.report.formatting import dtype_and_size


@silent_fault
def _outer_broadcast(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(OuterBroadcastLine):
        at = span(line["called_at"])
        if at is not None:
            both = f"{dtype_and_size(line['left'])} and {dtype_and_size(line['right'])}"
            sizes = f"({', '.join(map(str, line['result']))})"
            yield RuntimeFinding(
                "silent-broadcast",
                f"{both} are combined before the loss: both are broadcast to {sizes}",
                at,
                (Evidence(at, f"{both}: every pair of their elements"),),
            )


@silent_fault
def _float64(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(Float64PromotionLine):
        at = span(line["called_at"])
        if at is not None:
            both = f"{dtype_and_size(line['left'])} and {dtype_and_size(line['right'])}"
            yield RuntimeFinding(
                "silent-float64",
                f"{both} are combined: the result, and everything computed from it, is float64",
                at,
                (Evidence(at, both),),
                fixes=partial(_fixes, at, line),
            )


def _fixes(at: Span, line: Float64PromotionLine, read: ReadText) -> tuple[Fix, ...]:
    """The fix to convert the operand in float64 to float32, if the other one has this dtype."""
    dtypes = (line["left"]["dtype"], line["right"]["dtype"])
    if sorted(dtypes) != ["float32", "float64"]:
        return ()
    return converted_side(at, read, dtypes.index("float64"), "float()", "compute in float32")
