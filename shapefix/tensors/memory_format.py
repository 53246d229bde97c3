"""Copies that preserve the format of a tensor, and results that follow channels_last.

torch reads channels_last off all strides, also those of dimensions of size 1. Where a symbol turns out to
be 1 a stride may be another than its formula says, and torch may then see another format.
"""

from __future__ import annotations

from collections.abc import Iterable

from shapefix.tensors.bounds import at_least
from shapefix.tensors.layout import (
    Layout,
    channels_last,
    contiguous,
    contiguous_strides,
    is_contiguous,
    permuted_dense,
    unknown_strides,
)
from shapefix.tensors.overlap import unknown_view
from shapefix.tensors.polynomials import Size, product
from shapefix.tensors.tensor_iterator import dense_order, is_dense


def preserve_format(layout: Layout) -> Layout:
    """The layout of a copy that preserves the format: `.clone()`, `.to(dtype)`, `empty_like`, `.flip`."""
    if is_dense(layout):
        return layout
    order = dense_order(layout.sizes, [layout.strides])
    return unknown_strides(layout.sizes) if order is None else permuted_dense(layout.sizes, order)


def to(layout: Layout, *, changes: bool | None) -> Layout:
    """The layout of `.to(...)`: the tensor itself where nothing changes, else a copy; None for unknown."""
    if changes is False:
        return layout
    copy = preserve_format(layout)
    return copy if changes or copy == layout else unknown_view(layout.sizes, layout)


def as_contiguous(layout: Layout) -> Layout:
    """The layout of `.contiguous()`."""
    return layout if is_contiguous(layout) else contiguous(layout.sizes)


def suggests_channels_last(layout: Layout) -> bool | None:
    """Whether torch takes the layout for channels_last (4-D and 5-D only); None where that is not known."""
    if layout.rank not in (4, 5):
        return False
    if layout.is_constant:
        return _is_channels_last(layout)
    if layout.strides == contiguous_strides(layout.sizes):
        return False
    if layout.strides == channels_last(layout.sizes).strides:
        return at_least(product(layout.sizes[1:]), 2)
    # The last dimension would have to lie outside of the channels.
    return False if at_least(layout.strides[1] * layout.sizes[1] - layout.strides[-1], 1) else None


def _is_channels_last(layout: Layout) -> bool:
    sizes = [size.value or 0 for size in layout.sizes]
    strides = [stride.value or 0 for stride in layout.strides]
    least = 0
    if strides[1] == 0:
        return False
    for dim in (1, *range(layout.rank - 1, 1, -1), 0):
        if sizes[dim] == 0 or strides[dim] < least:
            return False
        # torch counts the ambiguous (N, 1, 1, 1) as contiguous.
        if dim == 0 and least == strides[1]:
            return False
        least = strides[dim] * max(sizes[dim], 1)
    return True


def in_suggested_format(sizes: Iterable[int | Size], *inputs: Layout) -> Layout:
    """A result of these sizes: channels_last where all inputs suggest it, contiguous where one does not.

    Strides are unknown where that is not known.
    """
    answers = [suggests_channels_last(layout) for layout in inputs]
    if all(answers):
        return channels_last(sizes)
    return contiguous(sizes) if False in answers else unknown_strides(sizes)
