"""Suspicious operations on tensors."""

from __future__ import annotations

from typing import Literal, TypedDict

from .models import ModuleName
from .values import DescribedValue, UserPlace


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


class SavedTensorWrittenLine(TypedDict):
    """A write into a tensor after it was saved for its gradient; module is the running one at the save.

    versions are those of the tensor at the save and at backward.
    """

    kind: Literal["saved_tensor_written"]
    size: list[int]
    versions: list[int]
    function: str
    module: str | None
    saved_at: UserPlace | None
    written_at: UserPlace | None
