"""Exceptions and the facts about the failed calls."""

from __future__ import annotations

from typing import Literal, TypedDict

from .data import Collator
from .values import CallArguments, DescribedValue, UserPlace

Origin = Literal["module", "loader", "loss", "backward", "rows", "script"]
"""The watched call that an exception left; rows is a batch that only the probe made."""


class ModuleDetails(TypedDict):
    """A failed module. attributes are its numbers and texts, integer_ranges those of its inputs.

    constructed_through are the callers of its construction, the nearest first.
    """

    name: str
    type: str
    library: bool
    constructed_at: UserPlace | None
    constructed_through: list[UserPlace]
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


class MissingKey(TypedDict):
    """A missing key of a mapping of the script. name is the expression of the mapping."""

    name: str
    key: str
    keys: list[str]


class AssertedValue(TypedDict):
    """An expression in a failed assert, and its value."""

    text: str
    value: str


class ExceptionDetails(TypedDict, total=False):
    """The facts about a watched call with an exception."""

    module: ModuleDetails
    loader: LoaderDetails
    given: CallArguments
    integer_ranges: list[list[int] | None]
    missing_key: MissingKey
    missing_folder: str
    asserted: list[AssertedValue]


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
