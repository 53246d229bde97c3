"""SF521: a recurrent layer or attention takes the batch for the time steps: `batch_first` is missing."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, Fix, Role
from shapefix.interpreter.events import OperationCalled
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.interpreter.values import Constant, LibraryObject, as_tensor
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size

_LAYERS = {
    f"torch.nn.{name}.__call__": argument
    for name, argument in (
        ("LSTM", "input"),
        ("GRU", "input"),
        ("RNN", "input"),
        ("TransformerEncoderLayer", "src"),
        ("TransformerEncoder", "src"),
        ("MultiheadAttention", "query"),
    )
}
"""Layers over the time steps in dimension 0, unless `batch_first` is set, and their first argument."""
_CONVOLUTIONS = {"torch.nn.Conv1d": 3, "torch.nn.Conv2d": 4, "torch.nn.Conv3d": 5}
"""Convolutions, and the dimensions of their results with a batch."""
_MOST_STEPS = 60


@rule("SF521", on=OperationCalled)
def batch_as_time(event: OperationCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    name = _LAYERS.get(event.function)
    layer = event.receiver
    if isinstance(layer, LibraryObject) and layer.kind == "torch.nn.TransformerEncoder":
        # The encoder has copies of the layer that it is given.
        layer = layer.fields.get("encoder_layer")
    if name is None or not isinstance(layer, LibraryObject) or layer.place is None:
        return
    first = layer.fields.get("batch_first", layer.fields.get("_batch_first"))
    given = as_tensor(event.positional[0] if event.positional else event.keywords.get(name))
    if not isinstance(first, Constant) or first.value is not False or given is None or not given.certain:
        return
    collated = _collated(given)
    if collated is None:
        return
    kind = layer.kind.rpartition(".")[2]
    code = abbreviate(event.place.code)
    is_stateful = len(event.positional) > 1 and kind != "MultiheadAttention"
    is_loaded = collated.op is Op.COLLATE
    made = "the DataLoader" if is_loaded else f"`{abbreviate(collated.place.code)}`"
    source = (
        "the DataLoader puts the samples into dimension 0" if is_loaded else "dimension 0 are the samples"
    )
    yield rule.diagnostic(
        event.place.span,
        f"`{code}` takes dimension 0, the batch of {made}, for the time steps: samples are mixed; "
        "use `batch_first=True`",
        evidence=[
            *call_trace(event),
            Evidence(collated.place.span, source),
            Evidence(layer.place.span, f"`nn.{kind}` without `batch_first=True`", Role.CAUSE, "created here"),
            Evidence(event.place.span, "each sample is a time step for this layer"),
        ],
        fixes=_fixes(layer, is_stateful or "hx" in event.keywords),
    )


def _collated(tensor: TensorValue) -> LayoutStep | None:
    """Return the step with samples in dimension 0 that are still there: a collation, or a convolution."""
    layout, step = tensor.layout, tensor.origin
    if layout is None or layout.rank != 3:
        return None
    batch, steps = layout.sizes[0], layout.sizes[1]
    if batch == steps or 1 in (batch.value, steps.value):
        return None
    for _ in range(_MOST_STEPS):
        if step is None or step.condition or not _begins_with(step, batch):
            return None
        if step.op is Op.COLLATE or _is_of_samples(step):
            return step
        step = step.source
    return None


def _is_of_samples(step: LayoutStep) -> bool:
    """Whether a convolution over a batch computed the tensor."""
    layer, layout = step.producer, step.layout
    rank = _CONVOLUTIONS.get(layer.kind) if isinstance(layer, LibraryObject) else None
    return rank is not None and layout is not None and layout.rank == rank


def _begins_with(step: LayoutStep, size: Size) -> bool:
    return step.layout is not None and step.layout.rank > 0 and step.layout.sizes[0] == size


def _fixes(layer: LibraryObject, is_stateful: bool) -> Iterator[Fix]:
    message = "put the batch first: `batch_first=True`"
    node = layer.place.node if layer.place is not None else None
    if layer.place is None or not isinstance(node, cst.Call) or is_stateful:
        yield Fix(Applicability.DISPLAY, message, ())
        return
    if any(each.keyword is not None and each.keyword.value == "batch_first" for each in node.args):
        yield Fix(Applicability.DISPLAY, message, ())
        return
    yield Fix(
        Applicability.UNSAFE, message, (rewrites.appended(layer.place.module, node, "batch_first=True"),)
    )
