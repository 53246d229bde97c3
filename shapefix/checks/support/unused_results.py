"""Results of tensor operations that the code discards."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from shapefix.checks.registry import Rule
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Fix, Span
from shapefix.interpreter.events import Discarded
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Unknown


def is_unused(event: Discarded, operations: frozenset[str]) -> bool:
    """Whether a tensor that one of these operations made is certainly not wanted by anybody."""
    kind, _, name = event.function.rpartition(".")
    if kind not in ("torch.Tensor", "torch") or name not in operations:
        return False
    if _is_display(event) or any(each.keyword and each.keyword.value == "out" for each in event.call.args):
        return False
    receiver = event.receiver.tensor if isinstance(event.receiver, Unknown) else event.receiver
    return isinstance(receiver, TensorValue) and receiver.certain


def unused_result(event: Discarded, rule: Rule, fixes: Sequence[Fix]) -> Diagnostic:
    outcome = f"`{event.name}` itself does not change" if event.name else "the line does nothing"
    return rule.diagnostic(
        event.place.span,
        f"the result of `{abbreviate(event.place.code)}` is thrown away: {outcome}",
        fixes=fixes,
    )


def _is_display(event: Discarded) -> bool:
    """Whether the file is the transcript of a session, where a line at the top level shows its value.

    Nobody else writes a bare name or attribute there.
    """
    lines = [line for line in event.place.module.tree.body if isinstance(line, cst.SimpleStatementLine)]
    shown = [part for line in lines for part in line.body if isinstance(part, cst.Expr)]
    return event.place.node in shown and any(
        isinstance(part.value, (cst.Name, cst.Attribute)) for part in shown
    )


def assigned(event: Discarded, target: str) -> list[Fix]:
    span = event.place.span
    start = Span(span.path, span.row, span.column, span.row, span.column)
    return [Fix(Applicability.SAFE, f"assign it: `{target} = …`", (Edit(start, f"{target} = "),))]
