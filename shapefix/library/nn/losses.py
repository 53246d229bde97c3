"""Losses: a single number, or with reduction="none" one for each element or sample."""

from __future__ import annotations

from collections.abc import Callable

from shapefix.domains.losses import LossComputed
from shapefix.domains.masks import MASK
from shapefix.domains.tokens import TokensCompared, is_computed_from
from shapefix.domains.try_blocks import StepKind, note_step
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.tensor_values import TensorValue, tensor_row
from shapefix.interpreter.values import Unknown, Value
from shapefix.library.nn.layers import functional, layer, result
from shapefix.library.nn.loss_checks import reduction_of
from shapefix.library.signatures import BoundArguments
from shapefix.tensors import tensor_iterator
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, contiguous, unknown_strides
from shapefix.tensors.ops import Op

SCALAR = Layout((), ())

Unreduced = Callable[[BoundArguments], Layout | None]


def _loss(call: Call, given: BoundArguments, unreduced: Unreduced) -> Value:
    """Result of the loss under the requested reduction."""
    note_step(call.ev, StepKind.LOSS, call.place.node)
    loss = call.name.removesuffix(".__call__")
    call.ev.emit(LossComputed(call.place, call.ev.calls, loss, call.receiver, given.values))
    name = next((n for n in ("input", "log_probs", "anchor", "input1") if n in given.values), "")
    if given.is_none(name):
        # torch raises a TypeError.
        return Unknown()
    first = given.tensor(name)
    reduction = reduction_of(given)
    if reduction is None:
        return result(call, first, None, Op.LOSS)
    layout: Layout | None = SCALAR
    if reduction == "none":
        try:
            layout = unreduced(given)
        except ShapeError:
            layout = None
    return result(call, first, layout, Op.LOSS)


def _layout(given: BoundArguments, name: str) -> Layout | None:
    tensor = given.tensor(name)
    return None if tensor is None else tensor.layout


def _elementwise(given: BoundArguments) -> Layout | None:
    one, two = _layout(given, "input"), _layout(given, "target")
    if one is None or two is None:
        return None
    layout = tensor_iterator.elementwise(one, two)
    # The order of the operands differs between losses composed of several operations.
    return layout if tensor_iterator.elementwise(two, one) == layout else unknown_strides(layout.sizes)


def _per_sample(given: BoundArguments) -> Layout | None:
    """Sizes of one loss per target; class probabilities as targets lose their class dimension."""
    source, target = _layout(given, "input"), _layout(given, "target")
    if target is None:
        return None
    if source is not None and source.rank == target.rank:
        return contiguous((target.sizes[:1] if source.rank > 1 else ()) + target.sizes[2:])
    return contiguous(target.sizes) if source is not None else None


def _first_dimension(given: BoundArguments) -> Layout | None:
    source = _layout(given, "input")
    return None if source is None else contiguous(source.sizes[:1] if source.rank > 1 else ())


@layer("CrossEntropyLoss", "NLLLoss", "NLLLoss2d")
@functional("cross_entropy", "nll_loss")
def cross_entropy(call: Call, given: BoundArguments) -> Value:
    targets = given.value("target")
    weighs = given.is_none("weight") is not True or reduction_of(given) not in ("mean", "sum")
    if given.number("ignore_index") == MASK and not weighs:
        if isinstance(targets, TensorValue) and tensor_row(targets) is not None:
            scores = given.tensor("input")
            from_inputs = scores is not None and is_computed_from(call.ev, scores, targets)
            call.ev.emit(TokensCompared(call.place, call.ev.calls, targets, from_inputs))
    return _loss(call, given, _per_sample)


@layer(
    "MSELoss",
    "L1Loss",
    "SoftMarginLoss",
    "SmoothL1Loss",
    "HuberLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "KLDivLoss",
    "PoissonNLLLoss",
    "HingeEmbeddingLoss",
)
@functional(
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "soft_margin_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
    "hinge_embedding_loss",
    "poisson_nll_loss",
)
def elementwise_loss(call: Call, given: BoundArguments) -> Value:
    return _loss(call, given, _elementwise)


@layer("GaussianNLLLoss")
@functional("gaussian_nll_loss")
@layer("TripletMarginLoss")
@functional("triplet_margin_loss")
@layer("MarginRankingLoss", "CosineEmbeddingLoss")
@functional("margin_ranking_loss", "cosine_embedding_loss")
@layer("CTCLoss")
@functional("ctc_loss")
def reduced_loss(call: Call, given: BoundArguments) -> Value:
    return _loss(call, given, lambda given: None)


@layer("MultiMarginLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss")
@functional("multilabel_soft_margin_loss", "multilabel_margin_loss", "multi_margin_loss")
def loss_per_row(call: Call, given: BoundArguments) -> Value:
    return _loss(call, given, _first_dimension)


@layer("AdaptiveLogSoftmaxWithLoss")
def adaptive_log_softmax(call: Call, given: BoundArguments) -> Value:
    source = given.tensor("input")
    output = None if source is None or source.layout is None else contiguous(source.layout.sizes[:-1])
    loss = result(call, source, SCALAR, Op.LOSS)
    return TupleValue((result(call, source, output, Op.LOSS), loss), ("output", "loss"))
