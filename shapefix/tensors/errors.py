"""Errors of the algebra: reasons for certain rejections by torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapefix.tensors.polynomials import Size


class ShapeError(ValueError):
    """Operation rejected by torch for all values of the symbols; the message gives the sizes or dtypes."""


class SizeMismatch(ShapeError):
    """Wrong size of one dimension of an operand.

    Operand number `operand` has size `have` in dimension `dim`. The required size `want` comes from dimension
    `other_dim` of operand number `other`, or from a setting if other is None. torch raises only if all sizes
    in conditions exceed 1: a size of 1 broadcasts.
    """

    def __init__(
        self,
        message: str,
        have: Size,
        want: Size,
        dim: int,
        operand: int = 0,
        other: int | None = None,
        other_dim: int | None = None,
    ) -> None:
        super().__init__(message)
        self.have = have
        self.want = want
        self.dim = dim
        self.operand = operand
        self.other = other
        self.other_dim = other_dim
        self.conditions: tuple[Size, ...] = ()


class WrongRank(ShapeError):
    """Wrong number of dimensions of an operand; want lists the accepted ranks."""

    def __init__(self, message: str, have: int, want: Sequence[int], operand: int = 0) -> None:
        super().__init__(message)
        self.have = have
        self.want = tuple(want)
        self.operand = operand


class WrongNumberOfElements(ShapeError):
    """View or reshape of a tensor of `have` elements to sizes `target` of a different number of elements."""

    def __init__(self, message: str, have: Size, target: Sequence[Size]) -> None:
        super().__init__(message)
        self.have = have
        self.target = tuple(target)


class WindowTooLarge(ShapeError):
    """Window of a convolution or pooling larger than the padded input.

    have is the padded size, window the size of the window, dim the dimension, counted from the end.
    """

    def __init__(self, message: str, have: Size, window: Size, dim: int) -> None:
        super().__init__(message)
        self.have = have
        self.window = window
        self.dim = dim


class NotDivisible(ShapeError):
    """Size `have` not divisible by `by`; `what` is torch's name of the size."""

    def __init__(self, message: str, have: Size, by: Size, what: str) -> None:
        super().__init__(message)
        self.have = have
        self.by = by
        self.what = what


class OneValuePerChannel(ShapeError):
    """Statistics of a single value for each channel: a batch norm in training mode, or an instance norm."""


class WrongParts(ShapeError):
    """Split of dimension dim into parts with a sum other than its size `whole`."""

    def __init__(self, message: str, whole: Size, dim: int, parts: Sequence[Size]) -> None:
        super().__init__(message)
        self.whole = whole
        self.dim = dim
        self.parts = tuple(parts)


class NoSuchDimension(ShapeError):
    """Dimension number `dim` out of range for a tensor of `rank` dimensions."""

    def __init__(self, message: str, dim: int, rank: int) -> None:
        super().__init__(message)
        self.dim = dim
        self.rank = rank


class TooManyIndices(ShapeError):
    """Index of `given` entries for a tensor of `rank` dimensions."""

    def __init__(self, message: str, rank: int, given: int) -> None:
        super().__init__(message)
        self.rank = rank
        self.given = given


class IndexOutOfRange(ShapeError):
    """Index out of range for dimension dim of the given size."""

    def __init__(self, message: str, index: Size, size: Size, dim: int) -> None:
        super().__init__(message)
        self.index = index
        self.size = size
        self.dim = dim


class ClassesLast(ShapeError):
    """Class ids for scores with the classes in the last dimension; torch expects them in dimension 1.

    unless holds pairs of sizes: torch does not raise if all pairs are equal. It is empty if one pair provably
    differs.
    """

    def __init__(self, message: str, unless: Sequence[tuple[Size, Size]]) -> None:
        super().__init__(message)
        self.unless = tuple(unless)


class WrongDtype(ShapeError):
    """Wrong dtype of an operand; want lists the accepted dtypes.

    want is the dtype of operand number `other`, or of the layer's weight if weight is set.
    """

    def __init__(
        self,
        message: str,
        have: str,
        want: Sequence[str],
        operand: int = 0,
        other: int | None = None,
        weight: bool = False,
    ) -> None:
        super().__init__(message)
        self.have = have
        self.want = tuple(want)
        self.operand = operand
        self.other = other
        self.weight = weight
