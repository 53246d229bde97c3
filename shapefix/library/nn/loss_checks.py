"""Checks of losses: mismatched sizes and dtypes of predictions and targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shapefix.interpreter.calls import Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value, as_tensor
from shapefix.library.nn.dtypes import may_be_cast
from shapefix.library.ops.broadcasts import note_broadcast
from shapefix.library.ops.value_range import outside_of
from shapefix.library.registry import add
from shapefix.library.rejections import reject
from shapefix.library.signatures import BoundArguments
from shapefix.tensors import dtype_checks, losses
from shapefix.tensors.errors import ClassesLast, IndexOutOfRange
from shapefix.tensors.polynomials import Size

Sizes = losses.Sizes


_OLDER = ("size_average", "reduce")


def reduction_of(given: BoundArguments) -> str | None:
    """Reduction of a loss, with the older arguments size_average and reduce; None if unknown."""
    stated = [name for name in _OLDER if name in given.values and given.is_none(name) is not True]
    older = {name: given.flag(name) for name in stated}
    if not older:
        return given.text("reduction")
    averages, reduces = (older.get(name, True) for name in _OLDER)
    if reduces is None or (reduces and averages is None):
        return None
    return "none" if not reduces else "mean" if averages else "sum"


class LossOperands:
    """Tensor arguments of a loss: sizes and dtypes by the names of parameters, None if unknown."""

    __slots__ = ("call", "given")

    def __init__(self, call: Call, given: Mapping[str, Value]) -> None:
        self.call = call
        self.given = given

    def tensor(self, name: str) -> TensorValue | None:
        tensor = as_tensor(self.given.get(name))
        if tensor is not None:
            tensor.certain = True
        return tensor

    def sizes(self, name: str) -> Sizes | None:
        tensor = self.tensor(name)
        return None if tensor is None or tensor.layout is None else tensor.layout.sizes

    def dtype(self, name: str) -> str | None:
        tensor = self.tensor(name)
        return None if tensor is None else tensor.dtype

    def checked(self, check: Callable[..., None], *names: str) -> None:
        """Call check with the sizes of these operands if all are known."""
        sizes = [self.sizes(name) for name in names]
        if all(one is not None for one in sizes):
            check(*sizes)


Check = Callable[[LossOperands, BoundArguments], None]
CHECKS: dict[str, Check] = {}


def _losses(layers: tuple[str, ...], functions: tuple[str, ...]) -> Callable[[Check], Check]:
    """Register a check of losses, by the names of the layers and functions."""

    def register(check: Check) -> Check:
        for kind in layers:
            add(CHECKS, f"torch.nn.{kind}", check)
        for name in functions:
            add(CHECKS, f"torch.nn.functional.{name}", check)
        return check

    return register


def check_loss(
    call: Call, name: str, given: Mapping[str, Value], settings: Mapping[str, Value], layer: Value | None
) -> None:
    """Check the arguments of a loss and report broadcasts. Raises ShapeError for rejected arguments."""
    check = CHECKS.get(name)
    if check is None:
        return
    operands = LossOperands(call, given)
    try:
        check(operands, BoundArguments(settings))
    except ClassesLast as error:
        if not error.unless:
            raise
        # torch does not raise if the sizes happen to be equal.
        reject(call, error, given, function=name, layer=layer, settings=settings)
    if name in _BY_CLASS:
        _check_range(call, name, operands, given, settings, layer)
    if name in _BROADCASTING:
        compared = {key: given[key] for key in ("input", "target") if key in given}
        note_broadcast(call, name, compared, layer=layer)


_BY_CLASS = frozenset(
    {
        "torch.nn.CrossEntropyLoss",
        "torch.nn.NLLLoss",
        "torch.nn.functional.cross_entropy",
        "torch.nn.functional.nll_loss",
    }
)


def _check_range(
    call: Call,
    name: str,
    operands: LossOperands,
    given: Mapping[str, Value],
    settings: Mapping[str, Value],
    layer: Value | None,
) -> None:
    """Report class ids outside of the classes of the scores, if their range is known."""
    ids = operands.tensor("target")
    classes = None if ids is None else _number_of_classes(operands, ids)
    if ids is None or classes is None:
        return
    ignored, dtype = BoundArguments(settings).number("ignore_index"), operands.dtype("target")
    if ignored is None or dtype is None or not dtype_checks.is_integral_or_bool(dtype):
        return
    outside = outside_of(ids, classes, ignored)
    if outside is None:
        return
    error = IndexOutOfRange(f"Target {outside} is out of bounds.", outside, classes, 0)
    reject(call, error, given, function=name, layer=layer, settings=settings)


def _number_of_classes(operands: LossOperands, ids: TensorValue) -> Size | None:
    """Number of classes of the scores; scores of unknown rank have one dimension more than the ids."""
    sizes, scores = operands.sizes("input"), operands.tensor("input")
    if sizes is not None:
        return sizes[0] if len(sizes) == 1 else sizes[1] if sizes else None
    is_row = ids.layout is not None and ids.layout.rank <= 1
    return scores.known_size(-1) if is_row and scores is not None else None


_BROADCASTING = frozenset(
    {
        "torch.nn.MSELoss",
        "torch.nn.L1Loss",
        "torch.nn.SmoothL1Loss",
        "torch.nn.HuberLoss",
        "torch.nn.PoissonNLLLoss",
        "torch.nn.functional.mse_loss",
        "torch.nn.functional.l1_loss",
        "torch.nn.functional.smooth_l1_loss",
        "torch.nn.functional.huber_loss",
        "torch.nn.functional.poisson_nll_loss",
    }
)


@_losses(("CrossEntropyLoss",), ("cross_entropy",))
def cross_entropy(operands: LossOperands, settings: BoundArguments) -> None:
    scores, target = operands.sizes("input"), operands.sizes("target")
    probabilities = None
    if scores is not None and target is not None:
        probabilities = losses.are_probabilities(scores, target)
        known = operands.dtype("target")
        ids = known is not None and dtype_checks.is_integral_or_bool(known)
        if probabilities is False or (ids and len(scores) > 1):
            losses.class_ids(scores, target)
    rank = None if scores is None else len(scores)
    dtype_checks.class_ids(operands.dtype("input"), operands.dtype("target"), probabilities, rank)


@_losses(("NLLLoss", "NLLLoss2d"), ("nll_loss",))
def negative_log_likelihood(operands: LossOperands, settings: BoundArguments) -> None:
    operands.checked(losses.class_ids, "input", "target")
    scores = operands.sizes("input")
    rank = None if scores is None else len(scores)
    dtype_checks.class_ids(operands.dtype("input"), operands.dtype("target"), False, rank)


@_losses(("BCELoss",), ("binary_cross_entropy",))
def binary_cross_entropy(operands: LossOperands, settings: BoundArguments) -> None:
    operands.checked(losses.equal_sizes, "input", "target")
    dtype_checks.equal(operands.dtype("input"), operands.dtype("target"), may_be_cast(operands.call))


@_losses(("BCEWithLogitsLoss",), ("binary_cross_entropy_with_logits",))
def binary_cross_entropy_with_logits(operands: LossOperands, settings: BoundArguments) -> None:
    operands.checked(losses.equal_sizes, "input", "target")
    dtype_checks.floating(operands.dtype("target"), 1)
    dtype_checks.floating(operands.dtype("input"))


@_losses(("MSELoss", "SmoothL1Loss"), ("mse_loss", "smooth_l1_loss"))
def squared_error(operands: LossOperands, settings: BoundArguments) -> None:
    operands.checked(losses.broadcast, "input", "target")
    dtype_checks.some_floating(operands.dtype("input"), operands.dtype("target"))


@_losses(("L1Loss",), ("l1_loss",))
def absolute_error(operands: LossOperands, settings: BoundArguments) -> None:
    operands.checked(losses.broadcast, "input", "target")
    dtype_checks.not_bool(operands.dtype("input"), operands.dtype("target"))
    if reduction_of(settings) == "mean":
        dtype_checks.some_floating(operands.dtype("input"), operands.dtype("target"))


@_losses(("HuberLoss",), ("huber_loss",))
def huber(operands: LossOperands, settings: BoundArguments) -> None:
    operands.checked(losses.broadcast, "input", "target")
    dtype_checks.floating(operands.dtype("input"))


@_losses(("KLDivLoss",), ("kl_div",))
def divergence(operands: LossOperands, settings: BoundArguments) -> None:
    operands.checked(losses.broadcast, "input", "target")
    dtype_checks.floating(operands.dtype("input"))
    dtype_checks.floating(operands.dtype("target"), 1)


@_losses(("PoissonNLLLoss",), ("poisson_nll_loss",))
def poisson(operands: LossOperands, settings: BoundArguments) -> None:
    operands.checked(losses.broadcast, "input", "target")


@_losses(("HingeEmbeddingLoss",), ("hinge_embedding_loss",))
def hinge_embedding(operands: LossOperands, settings: BoundArguments) -> None:
    operands.checked(losses.broadcast, "input", "target")
    dtype_checks.not_bool(operands.dtype("input"))
    if reduction_of(settings) == "mean":
        dtype_checks.floating(operands.dtype("input"))


@_losses(("SoftMarginLoss",), ("soft_margin_loss",))
def soft_margin(operands: LossOperands, settings: BoundArguments) -> None:
    operands.checked(losses.broadcast_into, "input", "target")
    dtype_checks.floating(operands.dtype("input"))


@_losses(("MultiLabelSoftMarginLoss",), ("multilabel_soft_margin_loss",))
def multilabel_soft_margin(operands: LossOperands, settings: BoundArguments) -> None:
    operands.checked(losses.broadcast, "input", "target")
    dtype_checks.floating(operands.dtype("input"))
    dtype_checks.not_bool(None, operands.dtype("target"))


@_losses(("MultiMarginLoss",), ("multi_margin_loss",))
def multi_margin(operands: LossOperands, settings: BoundArguments) -> None:
    operands.checked(losses.one_id_per_row, "input", "target")
    dtype_checks.one_of(operands.dtype("target"), ("int64",), 1)


@_losses(("MultiLabelMarginLoss",), ("multilabel_margin_loss",))
def multilabel_margin(operands: LossOperands, settings: BoundArguments) -> None:
    sizes = operands.sizes("input")
    if sizes is not None and len(sizes) == 2:
        operands.checked(losses.equal_sizes, "input", "target")
    dtype_checks.one_of(operands.dtype("target"), ("int64",), 1)


@_losses(("CosineEmbeddingLoss",), ("cosine_embedding_loss",))
def cosine_embedding(operands: LossOperands, settings: BoundArguments) -> None:
    operands.checked(losses.cosine_embedding, "input1", "input2", "target")


@_losses(("MarginRankingLoss",), ("margin_ranking_loss",))
def margin_ranking(operands: LossOperands, settings: BoundArguments) -> None:
    operands.checked(losses.same_rank, "input1", "input2", "target")


@_losses(("TripletMarginLoss",), ("triplet_margin_loss",))
def triplet_margin(operands: LossOperands, settings: BoundArguments) -> None:
    operands.checked(losses.triplets, "anchor", "positive", "negative")


@_losses(("CTCLoss",), ("ctc_loss",))
def ctc(operands: LossOperands, settings: BoundArguments) -> None:
    log_probs = operands.sizes("log_probs")
    if log_probs is not None:
        lengths = [(n, operands.sizes(name)) for n, name in ((2, "input_lengths"), (3, "target_lengths"))]
        losses.ctc(log_probs, lengths, operands.sizes("targets"))
    dtype_checks.floating(operands.dtype("log_probs"))
