"""The agent's lines for the probe: JSON objects, one per line, each with its `kind`.

Both sides import this module: the agent as `shapefix_probe.protocol` in the user's process. It imports the
standard library only, and works with Python 3.10. A new kind of line is a class here, and a member of Line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypedDict, TypeVar, get_args, get_type_hints

EndReason = Literal[
    "finished", "stopped", "exit", "os._exit", "uncaught", "time limit", "stuck", "missing", "no torch",
    "no device",
]  # fmt: skip
Origin = Literal["module", "loader", "loss", "backward", "rows", "script"]
"""The watched call that an exception left; rows is a batch that only the probe made."""


class UserPlace(TypedDict):
    """An expression in the user's code: rows and columns from 1, the end exclusive, in code points."""

    file: str
    row: int
    column: int
    end_row: int
    end_column: int
    function: str


class DescribedValue(TypedDict, total=False):
    """A described value: kind and type always, the rest if it applies to the kind."""

    kind: Literal["tensor", "array", "number", "text", "sequence", "mapping", "other"]
    type: str
    dtype: str
    size: list[int]
    device: str
    requires_grad: bool
    stride: list[int]
    contiguous: bool
    layout: str
    text: str
    length: int
    lengths: list[int]
    ragged: bool
    items: list[DescribedValue] | dict[str, DescribedValue]


class CallArguments(TypedDict):
    """The described arguments of a call."""

    args: list[DescribedValue]
    kwargs: dict[str, DescribedValue]


class StartLine(TypedDict):
    """Torch is imported and all hooks are set."""

    kind: Literal["start"]
    python: str
    executable: str
    torch: str
    devices: list[str]


class ScriptLine(TypedDict):
    """The file of the script, known once a module is found."""

    kind: Literal["script"]
    file: str


class SourceLine(TypedDict):
    """An executed file of the user's."""

    kind: Literal["source"]
    file: str
    sha256: str


class SkippedMagicLine(TypedDict):
    """A skipped line of a notebook, for IPython."""

    kind: Literal["skipped_magic"]
    file: str
    row: int
    text: str


class FileWrittenLine(TypedDict):
    """A file written by the script, redirected to the probe's folder.

    before is the size, time and inode of the real file, empty if not a regular file, None if it is missing.
    """

    kind: Literal["file_written"]
    path: str
    before: list[int] | None


class WriteRefusedLine(TypedDict):
    """A failed write, since the probe cannot redirect it."""

    kind: Literal["write_refused"]
    path: str


class WriteProtectionLine(TypedDict):
    """The system's protection of the working tree: by an overlay mount, by Landlock, or none.

    roots are the protected folders; reason is why no better method is used.
    """

    kind: Literal["write_protection"]
    method: Literal["overlay", "landlock", "none"]
    roots: list[str]
    reason: str | None


class UploadSkippedLine(TypedDict):
    """A skipped upload to the Hugging Face hub."""

    kind: Literal["upload_skipped"]
    function: str
    repository: str


class TrainerCreatedLine(TypedDict):
    """A Trainer of transformers was constructed."""

    kind: Literal["trainer_created"]
    type: str
    created_at: UserPlace | None


class ProcessesRequestedLine(TypedDict):
    """The script requested several processes."""

    kind: Literal["processes_requested"]
    requested: Any
    called_at: UserPlace | None


class Collator(TypedDict):
    """The collate function of a loader; file and row for the user's own."""

    name: str
    module: str
    file: str | None
    row: int | None


class LoaderLine(TypedDict):
    """A DataLoader was constructed."""

    kind: Literal["loader"]
    id: int
    created_at: UserPlace | None
    workers: int
    batch_size: int | None
    dataset: str
    length: int | None
    collate: Collator


class BatchLine(TypedDict):
    """One of the first batches of a loader; number counts from 1."""

    kind: Literal["batch"]
    loader: int
    number: int
    value: DescribedValue
    requested_at: UserPlace | None


class SampledRowsLine(TypedDict):
    """Sizes of some rows of a loader's dataset, by part; pair names two rows of different sizes."""

    kind: Literal["sampled_rows"]
    loader: int
    total: int
    numbers: list[int]
    sizes: dict[str, list[list[int] | None]]
    pair: list[int] | None


class ModuleEnterLine(TypedDict):
    """A module is called; called_at for outermost modules only."""

    kind: Literal["module_enter"]
    id: int
    parent: int | None
    name: str
    type: str
    grad_enabled: bool
    constructed_at: UserPlace | None
    called_at: UserPlace | None
    input: CallArguments


class ModuleExitLine(TypedDict):
    """The module call with the same id returned."""

    kind: Literal["module_exit"]
    id: int
    seconds: float
    out: DescribedValue


class SignatureUse(TypedDict):
    """The named parameters of a forward, and the arguments of one call.

    extra are the names that went into `**kwargs`; unread are passed, but never read by the user's forward.
    """

    parameters: list[str]
    passed: list[str]
    extra: list[str]
    unread: list[str]


class ForwardSignatureLine(TypedDict):
    """The signature of the forward of an outermost module, with the id of its call."""

    kind: Literal["forward_signature"]
    id: int
    signature: SignatureUse


class TargetFacts(TypedDict):
    """Values in the targets of a loss; the counts are None for losses without classes."""

    least: float
    greatest: float
    count: int | None
    ignored: int | None
    ignore_index: int | None
    reduction: str | None


class LossCallLine(TypedDict):
    """A loss function of torch.nn.functional is called."""

    kind: Literal["loss_call"]
    name: str
    called_at: UserPlace | None
    grad_enabled: bool
    input: CallArguments
    targets: TargetFacts | None


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


class GradientsLine(TypedDict):
    """The gradients at the first step of an optimizer.

    trained_elsewhere says that a parameter of another optimizer got a gradient other than zero.
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


class OptimizerCoverageLine(TypedDict):
    """Modules and an optimizer with different parameters."""

    kind: Literal["optimizer_coverage"]
    uncovered: UncoveredParameters | None
    orphaned: OrphanedParameters | None
    created_at: UserPlace | None


class OptimizerStepLine(TypedDict):
    """A step of an optimizer was made; number counts from 1 over all optimizers."""

    kind: Literal["optimizer_step"]
    number: int
    optimizer: str


class OuterBroadcastLine(TypedDict):
    """Arithmetic before a loss broadcast both operands, as (N, 1) with (N,)."""

    kind: Literal["outer_broadcast"]
    left: DescribedValue
    right: DescribedValue
    result: list[int]
    called_at: UserPlace | None


class Float64PromotionLine(TypedDict):
    """Arithmetic with one float64 operand gave a float64 result."""

    kind: Literal["float64_promotion"]
    left: DescribedValue
    right: DescribedValue
    called_at: UserPlace | None


class Batch1ViewLine(TypedDict):
    """A view legal only for a dimension of size 1."""

    kind: Literal["batch1_view"]
    value: DescribedValue
    requested: list[int]
    dimension: int
    outermost: bool
    called_at: UserPlace | None


class ModuleName(TypedDict):
    """A module by its name within the outermost one, and its class."""

    name: str
    type: str


class DeviceCopyLine(TypedDict):
    """A running module copied a tensor to another device; attribute is the tensor's name in the module."""

    kind: Literal["device_copy"]
    value: DescribedValue
    bytes: int
    module: ModuleName
    attribute: str | None
    called_at: UserPlace | None
    device: str


class LayoutCopyLine(TypedDict):
    """A running module copied a large tensor into another layout."""

    kind: Literal["layout_copy"]
    value: DescribedValue
    bytes: int
    module: ModuleName
    called_at: UserPlace | None
    function: str


class CollectiveLine(TypedDict):
    """A collective is called. group has its ranks, None for all; root is the rank it sends from or to."""

    kind: Literal["collective"]
    number: int
    called_at: UserPlace | None
    name: str
    tensor: DescribedValue | None
    root: int | None
    group: list[int] | None


class CollectiveDoneLine(TypedDict):
    """The collective of the same number returned."""

    kind: Literal["collective_done"]
    number: int


class MemoryTimelineLine(TypedDict):
    """Memory during one phase of the first training step: pairs of seconds and bytes."""

    kind: Literal["memory_timeline"]
    source: Literal["fake", "cuda", "process"]
    phase: str
    samples: Sequence[tuple[float, int]]


class PeakMemory(TypedDict):
    """The moment of most living memory in a phase; by_kind has the bytes by purpose."""

    bytes: int
    by_kind: dict[str, int]
    phase: str
    module: str | None
    operation: str
    site: UserPlace | None


class StepMemoryLine(TypedDict):
    """The memory of one training step on a simulated GPU: peaks by phase, and the memory alive after it."""

    kind: Literal["step_memory"]
    step: int
    peaks: dict[str, PeakMemory]
    totals: dict[str, int]
    reserved: int
    calls: int
    input: CallArguments | None


class TrialAppliedLine(TypedDict):
    """The setting of a trial was applied."""

    kind: Literal["trial_applied"]
    what: Literal["checkpointing", "bf16"]


class ModuleDetails(TypedDict):
    """A failed module. attributes are its numbers and texts, integer_ranges those of its inputs."""

    name: str
    type: str
    library: bool
    constructed_at: UserPlace | None
    attributes: dict[str, int | str]
    parameters: dict[str, DescribedValue]
    input: CallArguments
    integer_ranges: list[list[int] | None]
    outermost: bool
    called_at: UserPlace | None


class LoaderDetails(TypedDict):
    """A failed loader."""

    id: int
    created_at: UserPlace | None
    collate: Collator


class ExceptionDetails(TypedDict, total=False):
    """The facts about a watched call with an exception."""

    module: ModuleDetails
    loader: LoaderDetails
    given: CallArguments
    integer_ranges: list[list[int] | None]


class ExceptionCause(TypedDict):
    """The cause of another exception."""

    type: str
    message: str


class ExceptionLine(TypedDict):
    """An exception leaving a watched call or ending the script. stack has the innermost place first."""

    kind: Literal["exception"]
    id: int
    origin: Origin
    type: str
    message: str
    causes: list[ExceptionCause]
    stack: list[UserPlace]
    values: dict[str, DescribedValue]
    details: ExceptionDetails


class ExceptionSwallowedLine(TypedDict):
    """The script caught the exception of this id and went on; handler is the `except`, if known."""

    kind: Literal["exception_swallowed"]
    id: int
    handler: UserPlace | None


class LoopTruncatedLine(TypedDict):
    """A loop of the script was cut short; it may be the cause of later exceptions."""

    kind: Literal["loop_truncated"]
    reason: str
    site: UserPlace | None


class StopLine(TypedDict):
    """The probe stops the script; unpredictable says that the rest depends on unknown values."""

    kind: Literal["stop"]
    reason: str
    unpredictable: bool


class EndLine(TypedDict):
    """The end of the script. Memory is in bytes, and None if it cannot be measured."""

    kind: Literal["end"]
    how: EndReason
    site: UserPlace | None
    message: str | None
    code: int | None
    usage_error: bool
    exceptions: list[int]
    seconds: float | None
    forced: bool
    peak_process: int | None
    peak_cuda: int | None
    reserved_cuda: int | None


class CallSiteLine(TypedDict):
    """An executed call in the user's code. outer has the ids of the calls around it.

    values are whole numbers, and sizes of tensors, by the names of the frame.
    """

    kind: Literal["call_site"]
    id: int
    site: UserPlace
    outer: list[int]
    values: dict[str, int | list[int]]


class CallSiteReturnedLine(TypedDict):
    """The call of this id returned at least once."""

    kind: Literal["call_site_returned"]
    id: int


class ForwardReturnedLine(TypedDict):
    """A forward of the user's returned at least once."""

    kind: Literal["forward_returned"]
    file: str
    row: int
    function: str


Line = (
    StartLine
    | ScriptLine
    | SourceLine
    | SkippedMagicLine
    | FileWrittenLine
    | WriteRefusedLine
    | WriteProtectionLine
    | UploadSkippedLine
    | TrainerCreatedLine
    | ProcessesRequestedLine
    | LoaderLine
    | BatchLine
    | SampledRowsLine
    | ModuleEnterLine
    | ModuleExitLine
    | ForwardSignatureLine
    | LossCallLine
    | BackwardLine
    | LossNotFiniteLine
    | GradientsLine
    | OptimizerCoverageLine
    | OptimizerStepLine
    | OuterBroadcastLine
    | Float64PromotionLine
    | Batch1ViewLine
    | DeviceCopyLine
    | LayoutCopyLine
    | CollectiveLine
    | CollectiveDoneLine
    | MemoryTimelineLine
    | StepMemoryLine
    | TrialAppliedLine
    | ExceptionLine
    | ExceptionSwallowedLine
    | LoopTruncatedLine
    | StopLine
    | EndLine
    | CallSiteLine
    | CallSiteReturnedLine
    | ForwardReturnedLine
)
AnyLine = TypeVar("AnyLine", bound=Line)


class LineSink(Protocol):
    """The destination of the agent's lines."""

    def write(self, line: Line) -> None: ...


def kind_of(line_type: type[Any]) -> str:
    """The kind of the lines of a class."""
    return str(get_args(get_type_hints(line_type)["kind"])[0])


def kinds() -> Mapping[str, type[Any]]:
    """The class of each kind of line."""
    return {kind_of(each): each for each in get_args(Line)}
