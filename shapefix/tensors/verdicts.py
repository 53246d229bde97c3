"""What there is to say about a view."""

from __future__ import annotations

from dataclasses import dataclass

from shapefix.tensors.layout import Layout
from shapefix.tensors.polynomials import Size


@dataclass(frozen=True, slots=True)
class Legal:
    """torch accepts the view, and this is its layout."""

    layout: Layout


@dataclass(frozen=True, slots=True)
class Illegal:
    """torch refuses the view whenever each of conditions is greater than 1.

    Dimensions `dim` and `dim + 1` of the tensor would be merged: dim has stride `has`, and a merge needs
    `needs`. layout is that of a contiguous copy viewed so.
    """

    dim: int
    has: Size
    needs: Size
    conditions: tuple[Size, ...]
    layout: Layout


@dataclass(frozen=True, slots=True)
class Undecided:
    """It depends: on the number of elements where numel is set, else on the strides.

    layout is that of the view if torch accepts it.
    """

    layout: Layout
    numel: bool


@dataclass(frozen=True, slots=True)
class WrongNumel:
    """The tensor has `has` elements and the target asks for `wants`, which is provably something else.

    With a -1 in the target, wants is the product of the other sizes.
    """

    has: Size
    wants: Size


ViewVerdict = Legal | Illegal | Undecided | WrongNumel
"""What torch does with a view of a tensor that has elements; where all is constant, of any tensor."""
