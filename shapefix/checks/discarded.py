"""SF105: a shape operation whose result nobody takes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.layout import short
from shapefix.checks.registry import Rule, rule
from shapefix.checks.run import Run
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Fix, Severity, Span
from shapefix.interpreter.events import Discarded
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Unknown

_SHAPE_OPERATIONS = frozenset(
    "view view_as reshape reshape_as flatten ravel unflatten transpose swapaxes swapdims t permute movedim "
    "moveaxis squeeze unsqueeze expand expand_as broadcast_to narrow contiguous repeat tile unfold flip roll "
    "adjoint".split()
)


@rule(
    "SF105",
    "discarded-shape-operation",
    Severity.WARNING,
    "the result of `.reshape`, `.unsqueeze`, `.transpose` … is thrown away: the tensor stays as it was",
    Applicability.SAFE,
    on=Discarded,
)
def discarded_shape_operation(event: Discarded, run: Run, this: Rule) -> Iterator[Diagnostic]:
    kind, _, name = event.function.rpartition(".")
    if kind not in ("torch.Tensor", "torch") or name not in _SHAPE_OPERATIONS:
        return
    if _is_display(event) or any(each.keyword and each.keyword.value == "out" for each in event.call.args):
        return
    receiver = event.receiver.tensor if isinstance(event.receiver, Unknown) else event.receiver
    if not isinstance(receiver, TensorValue) or not receiver.certain:
        return
    outcome = f"`{event.name}` itself does not change" if event.name else "the line does nothing"
    yield this.diagnostic(
        event.place.span,
        f"the result of `{short(event.place.code)}` is thrown away: {outcome}",
        fixes=_assign(event, event.name) if event.name else (),
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


def _assign(event: Discarded, target: str) -> list[Fix]:
    span = event.place.span
    start = Span(span.path, span.row, span.column, span.row, span.column)
    return [Fix(Applicability.SAFE, f"assign it: `{target} = …`", (Edit(start, f"{target} = "),))]
