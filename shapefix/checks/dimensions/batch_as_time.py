"""SF521: a recurrent layer or attention takes the batch for the time steps: `batch_first` does not fit."""

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
from shapefix.light_dataclasses import dataclass
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
_RECURRENT = frozenset(f"torch.nn.{name}.__call__" for name in ("LSTM", "GRU", "RNN"))
_TRANSPOSITIONS = frozenset({Op.TRANSPOSE, Op.PERMUTE})
_CONVOLUTIONS = {"torch.nn.Conv1d": 3, "torch.nn.Conv2d": 4, "torch.nn.Conv3d": 5}
"""Convolutions, and the dimensions of their results with a batch."""
_MOST_STEPS = 60


@dataclass(frozen=True, slots=True)
class _Samples:
    """Dimension of a tensor with the samples of a batch, and the step of their collation."""

    step: LayoutStep
    dim: int
    transposed: LayoutStep | None

    @property
    def is_loaded(self) -> bool:
        return self.step.op is Op.COLLATE

    @property
    def made(self) -> str:
        return "the DataLoader" if self.is_loaded else f"`{abbreviate(self.step.place.code)}`"

    @property
    def first(self) -> int:
        """The dimension of the samples when they were put together."""
        return 1 - self.dim if self.transposed is not None else self.dim


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
    if not isinstance(first, Constant) or given is None or not given.certain:
        return
    if first.value is False:
        samples = _samples(given, 0)
        if samples is not None:
            yield _batch_as_time(event, layer, samples, rule)
    elif first.value is True:
        samples = _samples(given, 1)
        # Attention over another dimension may be meant.
        if samples is not None and (samples.transposed is None or event.function in _RECURRENT):
            yield _time_as_batch(event, layer, samples, rule)


def _batch_as_time(event: OperationCalled, layer: LibraryObject, samples: _Samples, rule: Rule) -> Diagnostic:
    code, kind = abbreviate(event.place.code), layer.kind.rpartition(".")[2]
    is_stateful = len(event.positional) > 1 and kind != "MultiheadAttention"
    return rule.diagnostic(
        event.place.span,
        f"`{code}` takes dimension 0, the batch of {samples.made}, for the time steps: samples are mixed; "
        "use `batch_first=True`",
        evidence=[
            *call_trace(event),
            *_origin(samples),
            *_created(layer, f"`nn.{kind}` without `batch_first=True`"),
            Evidence(event.place.span, "each sample is a time step for this layer"),
        ],
        fixes=_fixes(layer, is_stateful or "hx" in event.keywords),
    )


def _time_as_batch(event: OperationCalled, layer: LibraryObject, samples: _Samples, rule: Rule) -> Diagnostic:
    code, kind = abbreviate(event.place.code), layer.kind.rpartition(".")[2]
    pads = samples.step.op is Op.PAD_SEQUENCE and samples.transposed is None
    cure = "use `pad_sequence(…, batch_first=True)`" if pads else "give it the batch in dimension 0"
    return rule.diagnostic(
        event.place.span,
        f"`{code}` has `batch_first=True`, but dimension 1 is the batch of {samples.made}: samples are "
        f"mixed; {cure}",
        evidence=[
            *call_trace(event),
            *_origin(samples),
            *_created(layer, f"`nn.{kind}` with `batch_first=True`"),
            Evidence(event.place.span, "each sample is a time step for this layer"),
        ],
        fixes=[Fix(Applicability.DISPLAY, cure, ())],
    )


def _origin(samples: _Samples) -> Iterator[Evidence]:
    what = "the DataLoader puts" if samples.is_loaded else "puts"
    text = f"{what} the samples into dimension {samples.first}"
    if samples.step.producer is not None:
        text = f"dimension {samples.first} are the samples"
    yield Evidence(samples.step.place.span, text)
    if samples.transposed is not None:
        yield Evidence(samples.transposed.place.span, f"moves them into dimension {samples.dim}")


def _created(layer: LibraryObject, text: str) -> Iterator[Evidence]:
    if layer.place is not None:
        yield Evidence(layer.place.span, text, Role.CAUSE, "created here")


def _samples(tensor: TensorValue, dim: int) -> _Samples | None:
    """Return how samples came into a dimension of a tensor; None if they are not certain to be there."""
    layout, step = tensor.layout, tensor.origin
    if layout is None or layout.rank != 3:
        return None
    batch, steps = layout.sizes[dim], layout.sizes[1 - dim]
    if batch == steps or 1 in (batch.value, steps.value):
        return None
    where, transposed = dim, None
    for _ in range(_MOST_STEPS):
        if step is None or step.condition or not _has_in(step, batch, where):
            return None
        if step.op in (Op.COLLATE, Op.PAD_SEQUENCE) or _is_of_samples(step):
            first = step.dim if step.op is Op.PAD_SEQUENCE else 0
            return _Samples(step, dim, transposed) if first == where else None
        if step.op in _TRANSPOSITIONS:
            if transposed is not None or step.source is None or not _has_in(step.source, batch, 1 - where):
                return None
            where, transposed = 1 - where, step
        step = step.source
    return None


def _is_of_samples(step: LayoutStep) -> bool:
    """Whether a convolution over a batch computed the tensor."""
    layer, layout = step.producer, step.layout
    rank = _CONVOLUTIONS.get(layer.kind) if isinstance(layer, LibraryObject) else None
    return rank is not None and layout is not None and layout.rank == rank


def _has_in(step: LayoutStep, size: Size, dim: int) -> bool:
    """Whether one of the first two dimensions has this size, and not the other one."""
    if step.layout is None or step.layout.rank <= dim or step.layout.sizes[dim] != size:
        return False
    return all(other != size for other in step.layout.sizes[1 - dim : 2 - dim])


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
