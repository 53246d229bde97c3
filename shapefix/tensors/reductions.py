"""Operations along dimensions: reductions, softmax, cumulative sums, topk, sort."""

from __future__ import annotations

from collections.abc import Sequence

from shapefix.tensors.bounds import at_least
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, contiguous, wrap_dim
from shapefix.tensors.memory_format import preserve_format
from shapefix.tensors.polynomials import ONE, Size


def reduce(layout: Layout, dims: int | Sequence[int] | None = None, keepdim: bool = False) -> Layout:
    """Layout of a reduction (sum, mean, max, argmax, norm, ...) over dims, or over all if None; contiguous.

    Raises ShapeError if a dimension is out of range or repeated.
    """
    if dims is None or (not isinstance(dims, int) and not dims):
        gone = set(range(layout.rank))
    else:
        named = [wrap_dim(dim, layout.rank) for dim in ([dims] if isinstance(dims, int) else dims)]
        gone = set(named)
        if len(gone) != len(named):
            raise ShapeError("a dim appears multiple times in the list of dims")
    if keepdim:
        return contiguous(ONE if dim in gone else size for dim, size in enumerate(layout.sizes))
    return contiguous(size for dim, size in enumerate(layout.sizes) if dim not in gone)


def along_dim(layout: Layout, dim: int) -> Layout:
    """Layout of softmax, log_softmax, cumsum or cumprod along dim: contiguous, with the same sizes.

    Raises ShapeError if dim is out of range.
    """
    wrap_dim(dim, layout.rank)
    return contiguous(layout.sizes)


def topk(layout: Layout, k: int | Size, dim: int = -1) -> Layout:
    """Layout of the values, and of the indices, of `.topk(k, dim)`.

    Raises ShapeError if dim is out of range or k is provably larger than the dimension.
    """
    dim = wrap_dim(dim, layout.rank)
    if not layout.rank:
        return layout
    if at_least(layout.sizes[dim] - k, 0) is False:
        raise ShapeError(
            f"selected index k out of range: k is {k}, dimension {dim} has size {layout.sizes[dim]}"
        )
    return contiguous((*layout.sizes[:dim], k, *layout.sizes[dim + 1 :]))


def sort(layout: Layout, dim: int = -1) -> Layout:
    """Layout of the values, and of the indices, of `.sort(dim)`. Raises ShapeError if dim is out of range."""
    wrap_dim(dim, layout.rank)
    return preserve_format(layout)
