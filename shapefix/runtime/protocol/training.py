"""Losses, gradients and optimizers."""

from __future__ import annotations

from typing import Literal, TypedDict

from .values import CallArguments, DescribedValue, UserPlace


class TrainerCreatedLine(TypedDict):
    """A Trainer of transformers was constructed."""

    kind: Literal["trainer_created"]
    type: str
    created_at: UserPlace | None


class TargetFacts(TypedDict):
    """Values in the targets of a loss; the counts are None for losses without classes."""

    least: float
    greatest: float
    count: int | None
    ignored: int | None
    ignore_index: int | None
    reduction: str | None


class PaddedTargets(TypedDict):
    """The padding of `pad_sequence` among the targets of a loss without its `ignore_index`."""

    count: int
    total: int
    value: float
    made_at: UserPlace | None


class ScoreFacts(TypedDict):
    """The scores of a loss: their activation, if known, and its dimension.

    class_dim is the dimension of the classes; sums_to_one says that the scores are probabilities by value;
    total is the least logarithm of the sum of exponentials over the classes, 0 for log-probabilities.
    """

    activation: str | None
    dim: int | None
    class_dim: int | None
    sums_to_one: bool
    total: float | None


class LossCallLine(TypedDict):
    """A loss function of torch.nn.functional is called."""

    kind: Literal["loss_call"]
    name: str
    called_at: UserPlace | None
    grad_enabled: bool
    input: CallArguments
    targets: TargetFacts | None
    scores: ScoreFacts | None
    padding: PaddedTargets | None


class BackwardLine(TypedDict):
    """Backward is called. value is None if not finite; text is the value as Python prints it.

    producers are the operations that made the loss, the last one first.
    """

    kind: Literal["backward"]
    value: float | None
    text: str | None
    loss: DescribedValue
    connected: bool
    producers: list[str]
    called_at: UserPlace | None


class NonFiniteSource(TypedDict):
    """The first module with a nan or infinite input or output."""

    name: str
    type: str
    what: Literal["input", "out"]
    constructed_at: UserPlace | None


class LossNotFiniteLine(TypedDict):
    """A backward call on a nan or infinite loss."""

    kind: Literal["loss_not_finite"]
    value: str
    module: NonFiniteSource | None
    operation: str | None
    called_at: UserPlace | None


class NanSource(TypedDict):
    """An operation with nan as its result, or with infinity as that of finite numbers.

    least and greatest are of its first input, None if they are not finite; infinite says that an input is.
    """

    function: str
    made: Literal["nan", "inf"]
    at: UserPlace | None
    module: str | None
    least: float | None
    greatest: float | None
    infinite: bool


class NanOriginLine(TypedDict):
    """The operations on the way to a loss or gradients with nan or infinity, the first one first."""

    kind: Literal["nan_origin"]
    of: Literal["loss", "gradients"]
    sources: list[NanSource]


class GradientNorm(TypedDict):
    """The norms of the gradients and of the weights of one module, without those of its children."""

    module: str
    norm: float
    weights: float


class GradientsLine(TypedDict):
    """The gradients at the first step of an optimizer.

    trained_elsewhere says that a parameter of another optimizer got a gradient other than zero. norm is that
    of all gradients, None if it is not known or not finite; norms are those of the modules. models are the
    types of the outermost modules with its parameters.
    """

    kind: Literal["gradients"]
    optimizer: str
    called_at: UserPlace | None
    backward_calls: int
    with_gradient: int
    without_gradient: int
    frozen: int
    missing: list[str]
    not_finite: list[str]
    all_zero: bool
    trained_elsewhere: bool
    models: list[str]
    norm: float | None
    norms: list[GradientNorm]


class UncoveredParameter(TypedDict):
    """A parameter with a gradient, but in no optimizer.

    late says that its module was constructed after the last optimizer; pretrained, that its weights were
    loaded.
    """

    name: str
    numel: int
    late: bool
    pretrained: bool
    constructed_at: UserPlace | None


class UncoveredParameters(TypedDict):
    """The parameters with a gradient, but in no optimizer; count and numel are of all of them."""

    parameters: list[UncoveredParameter]
    count: int
    numel: int
    covered_numel: int
    optimizers: list[UserPlace]


class OrphanedParameters(TypedDict):
    """The parameters of an optimizer missing from all living modules."""

    parameters: list[DescribedValue]
    count: int


class UnregisteredParametersLine(TypedDict):
    """The parameters with a gradient, but without a model and an optimizer.

    holder is the attribute of a module with the layers or parameters, if found, and holder_type its type.
    """

    kind: Literal["unregistered_parameters"]
    parameters: list[UncoveredParameter]
    count: int
    numel: int
    covered_numel: int
    holder: str | None
    holder_type: str | None
    optimizers: list[UserPlace]


class OptimizerCoverageLine(TypedDict):
    """Modules and an optimizer with different parameters."""

    kind: Literal["optimizer_coverage"]
    uncovered: UncoveredParameters | None
    orphaned: OrphanedParameters | None
    created_at: UserPlace | None


class OptimizerStepLine(TypedDict):
    """A step of an optimizer was made; number counts from 1 over all optimizers.

    extra says that it was made with a batch after the wanted steps.
    """

    kind: Literal["optimizer_step"]
    number: int
    optimizer: str
    extra: bool


class StepTimesLine(TypedDict):
    """The time of a training step and of its parts in seconds; the rest is other code.

    rows are the samples that loaders returned for it, None if they are not known.
    """

    kind: Literal["step_times"]
    step: int
    seconds: float
    data: float
    forward: float
    backward: float
    optimizer: float
    rows: int | None


class CarriedGradientsLine(TypedDict):
    """The second step of an optimizer, with the gradients of its first step not cleared."""

    kind: Literal["carried_gradients"]
    optimizer: str
    parameters: int
    called_at: UserPlace | None
    backward_at: UserPlace | None


class MissingStepLine(TypedDict):
    """The end of a script with gradients for an optimizer, and without any step; called_at is backward."""

    kind: Literal["missing_step"]
    backward_calls: int
    called_at: UserPlace | None
    optimizers: list[UserPlace]


class EmptyStepLine(TypedDict):
    """The steps of an optimizer have no gradients, since backward comes after them."""

    kind: Literal["empty_step"]
    optimizer: str
    called_at: UserPlace | None
    backward_at: UserPlace | None


class RecordedEvaluationLine(TypedDict):
    """A call of a model in evaluation mode with a graph unused by backward calls."""

    kind: Literal["recorded_evaluation"]
    model: str
    called_at: UserPlace


class WrongModeLine(TypedDict):
    """A model is evaluated without `eval()`, or trained without `train()`; layer is dropout or batch norm."""

    kind: Literal["wrong_mode"]
    missing: Literal["train", "eval"]
    model: str
    layer: str
    called_at: UserPlace


class KeptGraphLine(TypedDict):
    """A variable keeps the graphs of several losses after backward; is_sum says that it is their sum."""

    kind: Literal["kept_graph"]
    name: str
    is_sum: bool
    stored_at: UserPlace | None


class ReplicaBypassedLine(TypedDict):
    """A training step called a module in DistributedDataParallel, and not its wrapper."""

    kind: Literal["replica_bypassed"]
    model: str
    called_at: UserPlace | None
    created_at: UserPlace | None


class ScheduleUnitLine(TypedDict):
    """A schedule in epochs steps once per batch, or the other way round; unit is that of its setting.

    batches are those of an epoch.
    """

    kind: Literal["schedule_unit"]
    scheduler: str
    setting: str
    value: float
    unit: Literal["epochs", "batches"]
    batches: int
    called_at: UserPlace | None


class SampleCutLine(TypedDict):
    """A `sample()` of a distribution between the loss and parameters without a gradient."""

    kind: Literal["sample_cut"]
    distribution: str
    called_at: UserPlace | None
    parameters: list[str]
    count: int


class OverfitLine(TypedDict):
    """The end of a training on one batch. unchanged are parameters with the values of before the first step.

    same_input says that the models got the same input at each step.
    """

    kind: Literal["overfit"]
    steps: int
    same_input: bool
    learning_rate: float | None
    parameters: int
    unchanged: list[str]
