"""The agent's lines for the probe: JSON objects, one per line, each with its `kind`.

Both sides import this package: the agent as `shapefix_probe.protocol` in the user's process. It imports the
standard library only, and works with Python 3.10. A new kind of line is a class in the module of its subject,
and a member of Line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar, get_args, get_type_hints

from .data import (
    BatchLine,
    Collator,
    ExtraBatchDoneLine,
    ExtraBatchLine,
    LoaderLine,
    SampledRowsLine,
    WorkersRefusedLine,
)
from .exceptions import (
    AssertedValue,
    ExceptionCause,
    ExceptionDetails,
    ExceptionLine,
    ExceptionSwallowedLine,
    LoaderDetails,
    MissingKey,
    ModuleDetails,
    Origin,
)
from .files import FileWrittenLine, UploadSkippedLine, WriteProtectionLine, WriteRefusedLine
from .memory import MemoryTimelineLine, PeakMemory, StepMemoryLine, TrialAppliedLine
from .models import (
    ForwardSignatureLine,
    MixedRows,
    ModelParametersLine,
    ModuleEnterLine,
    ModuleExitLine,
    ModuleName,
    RowTrialLine,
    SignatureUse,
)
from .ranks import CollectiveDoneLine, CollectiveLine, CollectiveWaitLine
from .script import (
    CallSiteLine,
    CallSiteReturnedLine,
    EndLine,
    EndReason,
    ForwardReturnedLine,
    LoopTruncatedLine,
    ProcessesRequestedLine,
    ScriptLine,
    SkippedMagicLine,
    SourceLine,
    StartLine,
    StopLine,
)
from .tensors import (
    Batch1ViewLine,
    DeviceCopyLine,
    Float64PromotionLine,
    LayoutCopyLine,
    OuterBroadcastLine,
    SavedTensorWrittenLine,
)
from .training import (
    BackwardLine,
    CarriedGradientsLine,
    EmptyStepLine,
    GradientNorm,
    GradientsLine,
    KeptGraphLine,
    LossCallLine,
    LossNotFiniteLine,
    MissingStepLine,
    NanOriginLine,
    NanSource,
    NonFiniteSource,
    OptimizerCoverageLine,
    OptimizerStepLine,
    OrphanedParameters,
    OverfitLine,
    PaddedTargets,
    RecordedEvaluationLine,
    ReplicaBypassedLine,
    SampleCutLine,
    ScheduleUnitLine,
    ScoreFacts,
    StepTimesLine,
    TargetFacts,
    TrainerCreatedLine,
    UncoveredParameter,
    UncoveredParameters,
    UnregisteredParametersLine,
    WrongModeLine,
)
from .values import CallArguments, DescribedValue, UserPlace

__all__ = [
    "AnyLine",
    "AssertedValue",
    "BackwardLine",
    "Batch1ViewLine",
    "BatchLine",
    "CallArguments",
    "CallSiteLine",
    "CallSiteReturnedLine",
    "CarriedGradientsLine",
    "Collator",
    "CollectiveDoneLine",
    "CollectiveLine",
    "CollectiveWaitLine",
    "DescribedValue",
    "DeviceCopyLine",
    "EmptyStepLine",
    "EndLine",
    "EndReason",
    "ExceptionCause",
    "ExceptionDetails",
    "ExceptionLine",
    "ExceptionSwallowedLine",
    "ExtraBatchDoneLine",
    "ExtraBatchLine",
    "FileWrittenLine",
    "Float64PromotionLine",
    "ForwardReturnedLine",
    "ForwardSignatureLine",
    "GradientNorm",
    "GradientsLine",
    "KeptGraphLine",
    "LayoutCopyLine",
    "Line",
    "LineSink",
    "LoaderDetails",
    "LoaderLine",
    "LoopTruncatedLine",
    "LossCallLine",
    "LossNotFiniteLine",
    "MemoryTimelineLine",
    "MissingKey",
    "MissingStepLine",
    "MixedRows",
    "ModelParametersLine",
    "ModuleDetails",
    "ModuleEnterLine",
    "ModuleExitLine",
    "ModuleName",
    "NanOriginLine",
    "NanSource",
    "NonFiniteSource",
    "OptimizerCoverageLine",
    "OptimizerStepLine",
    "Origin",
    "OrphanedParameters",
    "OuterBroadcastLine",
    "OverfitLine",
    "PaddedTargets",
    "PeakMemory",
    "ProcessesRequestedLine",
    "RecordedEvaluationLine",
    "ReplicaBypassedLine",
    "RowTrialLine",
    "SampleCutLine",
    "SampledRowsLine",
    "SavedTensorWrittenLine",
    "ScheduleUnitLine",
    "ScoreFacts",
    "ScriptLine",
    "SignatureUse",
    "SkippedMagicLine",
    "SourceLine",
    "StartLine",
    "StepMemoryLine",
    "StepTimesLine",
    "StopLine",
    "TargetFacts",
    "TrainerCreatedLine",
    "TrialAppliedLine",
    "UncoveredParameter",
    "UncoveredParameters",
    "UnregisteredParametersLine",
    "UploadSkippedLine",
    "UserPlace",
    "WorkersRefusedLine",
    "WriteProtectionLine",
    "WriteRefusedLine",
    "WrongModeLine",
    "kind_of",
    "kinds",
]

Line = (
    StartLine
    | ScriptLine
    | SourceLine
    | SkippedMagicLine
    | FileWrittenLine
    | WriteRefusedLine
    | WrongModeLine
    | WorkersRefusedLine
    | WriteProtectionLine
    | UploadSkippedLine
    | TrainerCreatedLine
    | ProcessesRequestedLine
    | LoaderLine
    | BatchLine
    | SampleCutLine
    | SampledRowsLine
    | ScheduleUnitLine
    | ExtraBatchLine
    | ExtraBatchDoneLine
    | ModuleEnterLine
    | ModuleExitLine
    | ModelParametersLine
    | ForwardSignatureLine
    | ReplicaBypassedLine
    | RowTrialLine
    | LossCallLine
    | BackwardLine
    | LossNotFiniteLine
    | NanOriginLine
    | GradientsLine
    | OptimizerCoverageLine
    | UnregisteredParametersLine
    | OptimizerStepLine
    | StepTimesLine
    | CarriedGradientsLine
    | EmptyStepLine
    | MissingStepLine
    | RecordedEvaluationLine
    | KeptGraphLine
    | OverfitLine
    | OuterBroadcastLine
    | Float64PromotionLine
    | Batch1ViewLine
    | SavedTensorWrittenLine
    | DeviceCopyLine
    | LayoutCopyLine
    | CollectiveLine
    | CollectiveDoneLine
    | CollectiveWaitLine
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
