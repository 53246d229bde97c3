"""Memory formats: format-preserving copies, and results in channels_last.

torch detects channels_last from all strides, including those of dimensions of size 1. If a symbol turns out
to be 1, a stride may differ from its formula, and torch may then detect another format.
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
    """Layout of a copy with torch.preserve_format: `.clone()`, `.to(dtype)`, `empty_like`, `.flip`."""
    if is_dense(layout):
        return layout
    order = dense_order(layout.sizes, [layout.strides])
    return unknown_strides(layout.sizes) if order is None else permuted_dense(layout.sizes, order)


def to(layout: Layout, *, changes: bool | None) -> Layout:
    """Layout of `.to(...)`: a copy if it changes dtype or device, else the tensor itself.

    changes is None if that is unknown.
    """
    if changes is False:
        return layout
    copy = preserve_format(layout)
    return copy if changes or copy == layout else unknown_view(layout.sizes, layout)


def as_contiguous(layout: Layout) -> Layout:
    """Layout of `.contiguous()`."""
    return layout if is_contiguous(layout) else contiguous(layout.sizes)


def suggests_channels_last(layout: Layout) -> bool | None:
    """Check whether torch treats the layout as channels_last, for rank 4 and 5; None if unknown."""
    if layout.rank not in (4, 5):
        return False
    if layout.is_constant:
        return _is_channels_last(layout)
    if layout.strides == contiguous_strides(layout.sizes):
        return False
    if layout.strides == channels_last(layout.sizes).strides:
        return at_least(product(layout.sizes[1:]), 2)
    # channels_last requires strides[-1] >= sizes[1] * strides[1].
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
        # torch treats the ambiguous (N, 1, 1, 1) as contiguous.
        if dim == 0 and least == strides[1]:
            return False
        least = strides[dim] * max(sizes[dim], 1)
    return True


def in_suggested_format(sizes: Iterable[int | Size], *inputs: Layout) -> Layout:
    """Layout of a result in the format suggested by its inputs: channels_last if unanimous, else contiguous.

    Strides are unknown if it is unknown what an input suggests.
    """
    answers = [suggests_channels_last(layout) for layout in inputs]
    if all(answers):
        return channels_last(sizes)
    return contiguous(sizes) if False in answers else unknown_strides(sizes)
