"""SF507 for recurrent layers: a hidden state that does not fit the layer, or the batch."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.context import CheckContext
from shapefix.checks.layout.view_across_stride_gap import short
from shapefix.checks.registry import Rule
from shapefix.checks.support.evidence import calls
from shapefix.checks.support.operands import layer_code, made_at, named, shown, way
from shapefix.diagnostics import Diagnostic, Evidence
from shapefix.interpreter.events import OpRejected
from shapefix.tensors.errors import SizeMismatch, WrongRank

RECURRENT = frozenset(f"torch.nn.{kind}{part}" for kind in ("RNN", "LSTM", "GRU") for part in ("", "Cell"))


def hidden_state(event: OpRejected, run: CheckContext, this: Rule) -> Iterator[Diagnostic]:
    """What is wrong with the hidden state that a recurrent layer is handed."""
    error = event.error
    if not isinstance(error, (SizeMismatch, WrongRank)):
        return
    if not 0 < error.operand < len(event.operands):
        return
    operand = event.operands[error.operand]
    subject = named(event, error.operand)
    subject = "the hidden state" if subject == "the input" else subject
    reason = _reason(event, error, run)
    yield this.diagnostic(
        event.place.span,
        f"`{short(event.place.code)}`: {subject} is {shown(operand, run)}, {reason}",
        evidence=[
            *calls(event),
            *made_at(event.layer),
            *way(operand.tensor, run),
            Evidence(event.place.span, reason.removeprefix("but ")),
        ],
    )


def _reason(event: OpRejected, error: SizeMismatch | WrongRank, run: CheckContext) -> str:
    layer = layer_code(event.layer) or event.function.removeprefix("torch.")
    if isinstance(error, WrongRank):
        wanted = " or ".join(map(str, error.want))
        return f"but this input needs a hidden state of {wanted} dimensions"
    want = run.text(error.want)
    if error.other is not None:
        return f"but the batch of {named(event, error.other)} is {want}"
    layout = event.operands[error.operand].layout
    if layout is not None and error.dim in (-1, layout.rank - 1):
        return f"but `{layer}` needs a hidden state whose last size is {want}"
    return f"but `{layer}` needs {want} in front: one for each layer and direction"
