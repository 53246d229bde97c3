"""Why torch would raise, as the algebra can prove it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapefix.tensors.polynomials import Size


class ShapeError(ValueError):
    """torch would raise, whatever the values of the symbols; the message says why, in sizes."""


class SizeMismatch(ShapeError):
    """One size of an operand is not the one that is wanted.

    operand counts the tensors that are handed over, dim the dimensions of that one; have is its size there.
    want is what a setting, or operand number `other`, asks for; other_dim is the dimension there.
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


class WrongRank(ShapeError):
    """An operand has another number of dimensions than one of those that are taken."""

    def __init__(self, message: str, have: int, want: Sequence[int], operand: int = 0) -> None:
        super().__init__(message)
        self.have = have
        self.want = tuple(want)
        self.operand = operand


class WrongNumberOfElements(ShapeError):
    """A tensor of `have` elements is to be seen in sizes that hold another number of them."""

    def __init__(self, message: str, have: Size, target: Sequence[Size]) -> None:
        super().__init__(message)
        self.have = have
        self.target = tuple(target)


class NoSuchDimension(ShapeError):
    """A dimension is named that the tensor does not have."""
