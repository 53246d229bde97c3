"""SF910: a term of the loss is a copy without its graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.event_order import receiver_code
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.graph_copies import without_copy
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Diagnostic, Evidence, Role
from shapefix.domains.training import Backward
from shapefix.interpreter.modules import dotted_name
from shapefix.interpreter.tensor_values import CutKind, GraphCut, TensorValue, requires_grad
from shapefix.interpreter.values import as_tensor

_COPYING = frozenset({"tensor", "as_tensor", "asarray", "new_tensor", "Tensor", "FloatTensor", "from_numpy"})
_ADDING = (cst.Add, cst.Subtract, cst.AddAssign, cst.SubtractAssign)
_SCALING = (cst.Multiply, cst.Divide, cst.MultiplyAssign, cst.DivideAssign)
_SUMMING = frozenset({"add", "sub", "sum", "mean"})
_FARTHEST = 50


@rule("SF910", on=Backward)
def copied_loss_term(event: Backward, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    loss = as_tensor(event.loss)
    if loss is None or requires_grad(loss) is not True:
        return
    for cut in _copied_terms(loss):
        named = abbreviate(receiver_code(event.place)) or abbreviate(event.place.code)
        code = abbreviate(cut.place.code)
        yield rule.diagnostic(
            cut.place.span,
            f"`{code}` copies values without their graph: this term of `{named}` trains nothing",
            evidence=[
                *call_trace(event),
                Evidence(cut.place.span, "the copy has no graph", Role.CAUSE, "no graph from here on"),
                Evidence(
                    event.place.span, f"a term of `{named}`, but a constant for its gradient", Role.FAILURE
                ),
            ],
            fixes=[rewrites.unsafe_or_advice("keep the tensors instead of a copy", without_copy(cut))],
        )
        return


def _copied_terms(loss: TensorValue) -> Iterator[GraphCut]:
    """Yield the ends of the graphs of copied terms of a sum."""
    waiting, reached = [loss], {id(loss)}
    while waiting and len(reached) < _FARTHEST:
        term = waiting.pop()
        if requires_grad(term) is False:
            if _is_copy(term.cut):
                yield term.cut
            continue
        for source in _terms(term):
            if id(source) not in reached:
                reached.add(id(source))
                waiting.append(source)


def _is_copy(cut: GraphCut | None) -> TypeGuard[GraphCut]:
    return (
        cut is not None
        and cut.kind is CutKind.OPERATION
        and cut.is_known
        and cut.operation.rpartition(".")[2] in _COPYING
    )


def _terms(total: TensorValue) -> tuple[TensorValue, ...]:
    """Return the terms of a sum, or the scaled tensor; nothing for other operations."""
    node = total.origin.place.node if total.origin is not None else None
    if isinstance(node, (cst.BinaryOperation, cst.AugAssign)):
        if isinstance(node.operator, _ADDING):
            return total.sources
        is_scaled = isinstance(node.operator, _SCALING) and len(total.sources) == 1
        return total.sources if is_scaled else ()
    if isinstance(node, cst.Call):
        name = dotted_name(node.func).rpartition(".")[2]
        return total.sources if name in _SUMMING else ()
    return ()
