"""Places in the user's code, and described values."""

from __future__ import annotations

from typing import Literal, TypedDict


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
