"""SF507 for recurrent layers: hidden states of a wrong size for the layer or the batch."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule
from shapefix.checks.support.conditions import comparison, in_backticks
from shapefix.checks.support.evidence import call_trace, layer_code, made_at, shape_trace
from shapefix.checks.support.layer_settings import has_batch_second
from shapefix.checks.support.operands import named, shown
from shapefix.checks.support.torch_errors import torch_error
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Condition, Diagnostic, Evidence, Fix
from shapefix.interpreter.events import OpRejected
from shapefix.tensors.errors import SizeMismatch, WrongRank
from shapefix.tensors.layout import Layout
from shapefix.tensors.options import provably_differ

RECURRENT = frozenset(f"torch.nn.{kind}{part}" for kind in ("RNN", "LSTM", "GRU") for part in ("", "Cell"))


def hidden_state(event: OpRejected, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    """Report a hidden state of a wrong size for a recurrent layer."""
    error = event.error
    if not isinstance(error, (SizeMismatch, WrongRank)):
        return
    if not 0 < error.operand < len(event.operands):
        return
    operand = event.operands[error.operand]
    subject = named(event, error.operand)
    subject = "the hidden state" if subject == "the input" else subject
    reason = _reason(event, error, context)
    is_swapped = _is_swapped(error, operand.layout)
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}`: {subject} is {shown(operand, context)}, {reason}",
        condition=_condition(error, context) if is_swapped else None,
        error=torch_error(event, context),
        evidence=[
            *call_trace(event),
            *made_at(event.layer),
            *shape_trace(operand.tensor, context),
            Evidence(event.place.span, reason.removeprefix("but ")),
        ],
        fixes=[Fix(Applicability.DISPLAY, _SWAP, ())] if is_swapped else [],
    )


_SWAP = "swap dimensions 0 and 1 of the state: `batch_first` does not apply to it"


def _is_swapped(error: SizeMismatch | WrongRank, layout: Layout | None) -> bool:
    """Whether a state has the batch in dimension 0, and the number of layers in dimension 1."""
    if not isinstance(error, SizeMismatch) or layout is None or layout.rank != 3 or error.dim != 0:
        return False
    return error.other is None and layout.sizes[1] == error.want


def _condition(error: SizeMismatch | WrongRank, context: CheckContext) -> Condition | None:
    """Return the condition of a mismatch with an unknown batch: both sizes may be equal by chance."""
    if not isinstance(error, SizeMismatch) or provably_differ(error.have, error.want):
        return None
    have, want = context.qualified(error.have), context.qualified(error.want)
    predicate = comparison(context.expression(error.have), "!=", context.expression(error.want))
    return Condition(f"{in_backticks(have)} != {in_backticks(want)}", predicate)


def _reason(event: OpRejected, error: SizeMismatch | WrongRank, context: CheckContext) -> str:
    layer = layer_code(event.layer) or event.function.removeprefix("torch.")
    if isinstance(error, WrongRank):
        wanted = " or ".join(map(str, error.want))
        return f"but this input expects a hidden state of {wanted} dimensions"
    want = context.text(error.want)
    if error.other is not None:
        note = ", its dimension 1 without `batch_first=True`" if has_batch_second(event.layer) else ""
        return f"but the batch size of {named(event, error.other)} is {want}{note}"
    layout = event.operands[error.operand].layout
    if layout is not None and error.dim in (-1, layout.rank - 1):
        return f"but `{layer}` expects a hidden state of last size {want}"
    return f"but `{layer}` expects size {want} in dimension 0: one for each layer and direction"
