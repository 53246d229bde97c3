"""Losses: a single number, or with reduction="none" one for each element or sample."""

from __future__ import annotations

from collections.abc import Callable

from shapefix.domains.masks import MASK
from shapefix.domains.tokens import TokensCompared
from shapefix.domains.try_blocks import StepKind, note_step
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.tensor_values import TensorValue, tensor_row
from shapefix.interpreter.values import Value
from shapefix.library.nn.layers import functional, layer, result
from shapefix.library.signatures import Given
from shapefix.tensors import tensor_iterator
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, contiguous, unknown_strides

SCALAR = Layout((), ())
_OLD = "size_average=None, reduce=None, reduction='mean'"

Unreduced = Callable[[Given], Layout | None]


def _loss(call: Call, given: Given, unreduced: Unreduced) -> Value:
    """The loss under the reduction that was asked for."""
    note_step(call.ev, StepKind.LOSS, call.place.node)
    first = given.tensor(
        next((n for n in ("input", "log_probs", "anchor", "input1") if n in given.values), "")
    )
    reduction = given.text("reduction")
    if given.is_none("size_average") is False or given.is_none("reduce") is False:
        reduction = None
    if reduction is None:
        return result(call, first, None, "compared")
    layout: Layout | None = SCALAR
    if reduction == "none":
        try:
            layout = unreduced(given)
        except ShapeError:
            layout = None
    return result(call, first, layout, "compared")


def _layout(given: Given, name: str) -> Layout | None:
    tensor = given.tensor(name)
    return None if tensor is None else tensor.layout


def _elementwise(given: Given) -> Layout | None:
    one, two = _layout(given, "input"), _layout(given, "target")
    if one is None or two is None:
        return None
    layout = tensor_iterator.elementwise(one, two)
    # Losses that are made of several operations let now the one, now the other operand come first.
    return layout if tensor_iterator.elementwise(two, one) == layout else unknown_strides(layout.sizes)


def _per_sample(given: Given) -> Layout | None:
    """One loss for each target; with probabilities as targets, for all but their dimension of classes."""
    source, target = _layout(given, "input"), _layout(given, "target")
    if target is None:
        return None
    if source is not None and source.rank == target.rank:
        return contiguous((target.sizes[:1] if source.rank > 1 else ()) + target.sizes[2:])
    return contiguous(target.sizes) if source is not None else None


def _first_dimension(given: Given) -> Layout | None:
    source = _layout(given, "input")
    return None if source is None else contiguous(source.sizes[:1] if source.rank > 1 else ())


_CLASSES = "weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean'"


@layer("CrossEntropyLoss", takes=f"{_CLASSES}, label_smoothing=0.0", forward="input, target")
@layer("NLLLoss", "NLLLoss2d", takes=_CLASSES, forward="input, target")
@functional("cross_entropy", takes=f"input, target, {_CLASSES}, label_smoothing=0.0")
@functional("nll_loss", takes=f"input, target, {_CLASSES}")
def cross_entropy(call: Call, given: Given) -> Value:
    targets = given.value("target")
    weighs = given.is_none("weight") is not True or given.text("reduction") not in ("mean", "sum")
    if given.number("ignore_index") == MASK and not weighs:
        if isinstance(targets, TensorValue) and tensor_row(targets) is not None:
            call.ev.emit(TokensCompared(call.place, call.ev.calls, targets))
    return _loss(call, given, _per_sample)


@layer("MSELoss", "L1Loss", "SoftMarginLoss", takes=_OLD, forward="input, target")
@layer("SmoothL1Loss", takes=f"{_OLD}, beta=1.0", forward="input, target")
@layer("HuberLoss", takes="reduction='mean', delta=1.0", forward="input, target")
@layer("BCELoss", takes=f"weight=None, {_OLD}", forward="input, target")
@layer("BCEWithLogitsLoss", takes=f"weight=None, {_OLD}, pos_weight=None", forward="input, target")
@layer("KLDivLoss", takes=f"{_OLD}, log_target=False", forward="input, target")
@layer(
    "PoissonNLLLoss",
    takes="log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction='mean'",
    forward="input, target",
)
@layer(
    "HingeEmbeddingLoss",
    takes=f"margin=1.0, {_OLD}",
    forward="input, target",
)
@functional("mse_loss", takes=f"input, target, {_OLD}, weight=None")
@functional("l1_loss", takes=f"input, target, {_OLD}, weight=None")
@functional("smooth_l1_loss", takes=f"input, target, {_OLD}, beta=1.0")
@functional("huber_loss", takes="input, target, reduction='mean', delta=1.0, weight=None")
@functional("soft_margin_loss", takes=f"input, target, {_OLD}")
@functional("binary_cross_entropy", takes=f"input, target, weight=None, {_OLD}")
@functional("binary_cross_entropy_with_logits", takes=f"input, target, weight=None, {_OLD}, pos_weight=None")
@functional("kl_div", takes=f"input, target, {_OLD}, log_target=False")
@functional(
    "hinge_embedding_loss",
    takes="input, target, margin=1.0, size_average=None, reduce=None, reduction='mean'",
)
@functional(
    "poisson_nll_loss",
    takes="input, target, log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, "
    "reduction='mean'",
)
def elementwise_loss(call: Call, given: Given) -> Value:
    return _loss(call, given, _elementwise)


@layer("GaussianNLLLoss", takes="*, full=False, eps=1e-06, reduction='mean'", forward="input, target, var")
@functional("gaussian_nll_loss", takes="input, target, var, full=False, eps=1e-06, reduction='mean'")
@layer(
    "TripletMarginLoss",
    takes="margin=1.0, p=2.0, eps=1e-06, swap=False, size_average=None, reduce=None, reduction='mean'",
    forward="anchor, positive, negative",
)
@functional(
    "triplet_margin_loss",
    takes="anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, size_average=None, "
    "reduce=None, reduction='mean'",
)
@layer("MarginRankingLoss", takes=f"margin=0.0, {_OLD}", forward="input1, input2, target")
@layer("CosineEmbeddingLoss", takes=f"margin=0.0, {_OLD}", forward="input1, input2, target")
@functional("margin_ranking_loss", "cosine_embedding_loss", takes=f"input1, input2, target, margin=0, {_OLD}")
@layer(
    "CTCLoss",
    takes="blank=0, reduction='mean', zero_infinity=False",
    forward="log_probs, targets, input_lengths, target_lengths",
)
@functional(
    "ctc_loss",
    takes="log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', zero_infinity=False",
)
def other_loss(call: Call, given: Given) -> Value:
    return _loss(call, given, lambda given: None)


@layer(
    "MultiMarginLoss",
    takes="p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction='mean'",
    forward="input, target",
)
@layer("MultiLabelMarginLoss", takes=_OLD, forward="input, target")
@layer("MultiLabelSoftMarginLoss", takes=f"weight=None, {_OLD}", forward="input, target")
@functional("multilabel_soft_margin_loss", takes=f"input, target, weight=None, {_OLD}")
@functional("multilabel_margin_loss", takes=f"input, target, {_OLD}")
@functional(
    "multi_margin_loss",
    takes="input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction='mean'",
)
def loss_per_row(call: Call, given: Given) -> Value:
    return _loss(call, given, _first_dimension)


@layer(
    "AdaptiveLogSoftmaxWithLoss",
    takes="in_features, n_classes, cutoffs, div_value=4.0, head_bias=False",
    forward="input, target",
)
def adaptive_log_softmax(call: Call, given: Given) -> Value:
    source = given.tensor("input")
    output = None if source is None or source.layout is None else contiguous(source.layout.sizes[:-1])
    loss = result(call, source, SCALAR, "compared")
    return TupleValue((result(call, source, output, "compared"), loss), ("output", "loss"))
