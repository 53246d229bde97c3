"""Calls of modules."""

from __future__ import annotations

from typing import Literal, TypedDict

from .values import CallArguments, DescribedValue, UserPlace


class ModuleName(TypedDict):
    """A module by its name within the outermost one, and its class."""

    name: str
    type: str


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
