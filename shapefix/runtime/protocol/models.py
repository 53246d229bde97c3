"""Calls of modules."""

from __future__ import annotations

from typing import Literal, TypedDict

from .values import CallArguments, DescribedValue, UserPlace


class ModuleName(TypedDict):
    """A module by its name within the outermost one, and its class."""

    name: str
    type: str


class ModuleEnterLine(TypedDict):
    """A module is called; called_at and the variable of the caller for outermost modules only."""

    kind: Literal["module_enter"]
    id: int
    parent: int | None
    name: str
    type: str
    grad_enabled: bool
    constructed_at: UserPlace | None
    called_at: UserPlace | None
    variable: str | None
    input: CallArguments


class ModuleExitLine(TypedDict):
    """The module call with the same id returned."""

    kind: Literal["module_exit"]
    id: int
    seconds: float
    multiplications: int | None
    out: DescribedValue


class ModelParametersLine(TypedDict):
    """The parameters of an outermost module after its call; each is counted once.

    id is that of the call. bytes are by dtype, and modules are the numbers of parameters by name, those of
    inner modules included.
    """

    kind: Literal["model_parameters"]
    id: int
    total: int
    trainable: int
    bytes: dict[str, int]
    buffer_bytes: int
    modules: dict[str, int]


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


class MixedRows(TypedDict):
    """The place of a mix of the samples of a batch: in a module, or in code between two modules.

    size is that of the module's input.
    """

    module: str
    type: str
    size: list[int]
    after: str
    before: str
    constructed_at: UserPlace | None


class RowTrialLine(TypedDict):
    """The dependencies of a model's output, in evaluation mode.

    mixed is where the output for a sample changes with the other samples; constant says that all samples have
    the same output; cut are the modules whose parameters change the output, but get no gradient, and cut_at
    is the construction of the first. detached_at is the call that detaches their result, if it is known. rows
    is the number of samples, 0 if it is not known.
    """

    kind: Literal["row_trial"]
    model: str
    rows: int
    mixed: MixedRows | None
    constant: bool
    cut: list[str]
    cut_at: UserPlace | None
    detached_at: UserPlace | None
    called_at: UserPlace | None
    constructed_at: UserPlace | None
