"""Why torch would raise, as the algebra can prove it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapefix.tensors.polynomials import Size


class ShapeError(ValueError):
    """torch would raise, whatever the values of the symbols; the message says why, in sizes or dtypes."""


class SizeMismatch(ShapeError):
    """One size of an operand is not the one that is wanted.

    operand counts the tensors that are handed over, dim the dimensions of that one; have is its size there.
    want is what a setting, or operand number `other`, asks for; other_dim is the dimension there. conditions
    are sizes that must exceed 1 for torch to raise: of size 1 they would be stretched.
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


class WindowTooLarge(ShapeError):
    """A window spans more of a dimension than the input has there, padding included.

    have is the padded size, dim the dimension, counted from the end.
    """

    def __init__(self, message: str, have: Size, window: Size, dim: int) -> None:
        super().__init__(message)
        self.have = have
        self.window = window
        self.dim = dim


class NotDivisible(ShapeError):
    """A size is to be cut into equal parts and leaves a remainder; what is its name in torch."""

    def __init__(self, message: str, have: Size, by: Size, what: str) -> None:
        super().__init__(message)
        self.have = have
        self.by = by
        self.what = what


class WrongParts(ShapeError):
    """The sizes of the parts that dimension dim is split into do not add up to its own."""

    def __init__(self, message: str, whole: Size, dim: int, parts: Sequence[Size]) -> None:
        super().__init__(message)
        self.whole = whole
        self.dim = dim
        self.parts = tuple(parts)


class NoSuchDimension(ShapeError):
    """Dimension `dim` is named, and the tensor has `rank` of them."""

    def __init__(self, message: str, dim: int, rank: int) -> None:
        super().__init__(message)
        self.dim = dim
        self.rank = rank


class TooManyIndices(ShapeError):
    """A tensor of `rank` dimensions is indexed by `given` indices."""

    def __init__(self, message: str, rank: int, given: int) -> None:
        super().__init__(message)
        self.rank = rank
        self.given = given


class IndexOutOfRange(ShapeError):
    """Dimension dim has this size, and no element at this index."""

    def __init__(self, message: str, index: Size, size: Size, dim: int) -> None:
        super().__init__(message)
        self.index = index
        self.size = size
        self.dim = dim


class ClassesLast(ShapeError):
    """Scores whose last dimension counts the classes meet class ids: torch takes the second one for them.

    unless are the sizes that would all have to be equal for torch not to notice; empty where they differ.
    """

    def __init__(self, message: str, unless: Sequence[tuple[Size, Size]]) -> None:
        super().__init__(message)
        self.unless = tuple(unless)


class WrongDtype(ShapeError):
    """An operand has a dtype that the operation does not take; want are those that it takes.

    other is the operand, and weight tells whether it is the layer's weight, whose dtype want is.
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
