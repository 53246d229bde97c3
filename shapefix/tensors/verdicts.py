"""Verdicts on a view."""

from __future__ import annotations

from shapefix.light_dataclasses import dataclass
from shapefix.tensors.layout import Layout
from shapefix.tensors.polynomials import Size


@dataclass(frozen=True, slots=True)
class Legal:
    """View accepted by torch, with its layout."""

    layout: Layout


@dataclass(frozen=True, slots=True)
class Illegal:
    """View rejected by torch if all sizes in conditions exceed 1.

    The view merges dimension `outer` with dimension `inner`, the next one besides those of size 1: outer has
    stride `has`, and a merge requires `needs`. layout is the layout of the view of a contiguous copy.
    """

    outer: int
    inner: int
    has: Size
    needs: Size
    conditions: tuple[Size, ...]
    layout: Layout


@dataclass(frozen=True, slots=True)
class Undecided:
    """View with an undecided outcome: by the number of elements if numel is set, else by strides.

    layout is the layout of the view if torch accepts it.
    """

    layout: Layout
    numel: bool


@dataclass(frozen=True, slots=True)
class WrongNumel:
    """View to a number of elements `wants`, provably different from the tensor's number `has`.

    With a -1 in the target, wants is the product of the other sizes.
    """

    has: Size
    wants: Size


ViewVerdict = Legal | Illegal | Undecided | WrongNumel
"""Verdict on a view of a nonempty tensor; with only constants, of any tensor."""
