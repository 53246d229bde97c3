"""Operations to reorder, add, drop or repeat dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from shapefix.tensors.bounds import at_least, same
from shapefix.tensors.errors import ShapeError, SizeMismatch, WrongRank
from shapefix.tensors.layout import (
    Layout,
    contiguous,
    contiguous_strides,
    sizes_of,
    unknown_strides,
    wrap_dim,
)
from shapefix.tensors.memory_format import preserve_format
from shapefix.tensors.polynomials import ONE, ZERO, Size


def transpose(layout: Layout, dim0: int, dim1: int) -> Layout:
    """Layout of `.transpose(dim0, dim1)`. Raises ShapeError if a dimension is out of range."""
    one, two = wrap_dim(dim0, layout.rank), wrap_dim(dim1, layout.rank)
    order = list(range(layout.rank))
    if order:
        order[one], order[two] = order[two], order[one]
    return _reordered(layout, order)


def t(layout: Layout) -> Layout:
    """Layout of `.t()`. Raises ShapeError for more than two dimensions."""
    if layout.rank > 2:
        raise ShapeError(f"t() expects a tensor with <= 2 dimensions, but self is {layout.rank}D")
    return T(layout)


def T(layout: Layout) -> Layout:
    """Layout of `.T`: all dimensions reversed."""
    return Layout(layout.sizes[::-1], layout.strides[::-1])


def mT(layout: Layout) -> Layout:
    """Layout of `.mT`: the last two dimensions swapped. Raises ShapeError for rank 1."""
    if not layout.rank:
        return layout
    if layout.rank == 1:
        raise ShapeError(
            f"tensor.mT is only supported on matrices or batches of matrices, got {layout.rank}-D"
        )
    return transpose(layout, -2, -1)


def permute(layout: Layout, dims: Sequence[int]) -> Layout:
    """Layout of `.permute(dims)`.

    Raises ShapeError if dims is not a permutation of all dimensions.
    """
    if len(dims) != layout.rank:
        raise WrongRank(
            f"permute: the tensor has {layout.rank} dimensions, but {len(dims)} are listed",
            layout.rank,
            (len(dims),),
        )
    order = [wrap_dim(dim, layout.rank) for dim in dims]
    if len(set(order)) != len(order):
        raise ShapeError("permute: duplicate dims are not allowed")
    return _reordered(layout, order)


def movedim(layout: Layout, source: int | Sequence[int], destination: int | Sequence[int]) -> Layout:
    """Layout of `.movedim(source, destination)`; the other dimensions keep their order.

    Raises ShapeError if a dimension is out of range or repeated, or the two lists differ in length.
    """
    sources, targets = _dimensions(source, layout.rank), _dimensions(destination, layout.rank)
    if len(sources) != len(targets):
        raise ShapeError("movedim: source and destination must have the same number of elements")
    if len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise ShapeError("movedim: repeated dim")
    if not layout.rank:
        return layout
    placed = dict(zip(targets, sources, strict=True))
    others = iter(dim for dim in range(layout.rank) if dim not in sources)
    return _reordered(layout, [placed[dim] if dim in placed else next(others) for dim in range(layout.rank)])


def _dimensions(dims: int | Sequence[int], rank: int) -> list[int]:
    return [wrap_dim(dim, rank) for dim in ([dims] if isinstance(dims, int) else dims)]


def _reordered(layout: Layout, order: Sequence[int]) -> Layout:
    return Layout(tuple(layout.sizes[dim] for dim in order), tuple(layout.strides[dim] for dim in order))


def squeeze(layout: Layout, dim: int | Sequence[int] | None = None) -> Layout | None:
    """Layout of `.squeeze(dim)`, or of `.squeeze()`; None if a size may or may not be 1.

    Raises ShapeError if a dimension is out of range.
    """
    if dim is None:
        dims = set(range(layout.rank))
    else:
        dims = set(_dimensions(dim, layout.rank))
    kept = []
    for place, size in enumerate(layout.sizes):
        if place in dims:
            if size.value == 1:
                continue
            if same(size, 1) is not False:
                return None
        kept.append(place)
    return _reordered(layout, kept)


def unsqueeze(layout: Layout, dim: int) -> Layout:
    """Layout of `.unsqueeze(dim)`. Raises ShapeError if dim is out of range."""
    dim = wrap_dim(dim, layout.rank + 1)
    stride = layout.sizes[dim] * layout.strides[dim] if dim < layout.rank else ONE
    return Layout(
        (*layout.sizes[:dim], ONE, *layout.sizes[dim:]),
        (*layout.strides[:dim], stride, *layout.strides[dim:]),
    )


def atleast_nd(layout: Layout, least: int) -> Layout:
    """Layout of atleast_1d, atleast_2d or atleast_3d: vectors become rows, matrices get a last dimension."""
    while layout.rank < min(least, 2):
        layout = unsqueeze(layout, 0)
    return unsqueeze(layout, layout.rank) if layout.rank < least else layout


def expand(layout: Layout, sizes: Sequence[int | Size]) -> Layout:
    """Layout of `.expand(sizes)`; -1 keeps a size, and expanded dimensions have stride 0.

    Raises ShapeError for too few sizes, or if a size other than 1 would have to change.
    """
    target = sizes_of(sizes)
    added = len(target) - layout.rank
    if added < 0:
        message = (
            f"expand: the number of sizes provided ({len(target)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({layout.rank})"
        )
        raise WrongRank(message, layout.rank, tuple(range(len(target) + 1)))
    found: list[Size] = []
    strides: list[Size] = []
    for place in range(len(target) - 1, -1, -1):
        have = layout.sizes[place - added] if place >= added else ONE
        stride = (
            layout.strides[place - added] if place >= added else found[-1] * strides[-1] if found else ONE
        )
        want = target[place]
        if want.value == -1:
            if place < added:
                raise ShapeError("expand: -1 isn't allowed in a leading, non-existing dimension")
            want = have
        found.append(want)
        strides.append(_stretched(have, stride, want, place))
    return Layout(tuple(reversed(found)), tuple(reversed(strides)))


def _stretched(have: Size, stride: Size, want: Size, place: int) -> Size:
    """Stride of a dimension of size have after an expand to size want."""
    fits = same(have, want)
    if fits:
        return stride
    if have.value == 1:
        return ZERO
    if at_least(have, 2):
        if fits is False:
            raise SizeMismatch(
                f"the expanded size of the tensor ({want}) must match the existing size ({have})",
                have,
                want,
                place,
            )
        return stride
    # The dimension is expanded if its size is 1 and kept otherwise: the stride is 0 or unchanged.
    return Size.symbol(f"stride{place}", 0)


def expand_as(layout: Layout, other: Layout) -> Layout:
    """Layout of `.expand_as(other)`. Raises ShapeError as expand does."""
    return expand(layout, other.sizes)


def broadcast_to(layout: Layout, sizes: Sequence[int | Size]) -> Layout:
    """Layout of `.broadcast_to(sizes)`. Raises ShapeError as expand does."""
    return expand(layout, sizes)


def repeat(layout: Layout, repeats: Sequence[int | Size]) -> Layout:
    """Layout of `.repeat(repeats)`, a contiguous copy.

    Raises ShapeError for fewer repeats than dimensions.
    """
    times = sizes_of(repeats)
    added = len(times) - layout.rank
    if added < 0:
        raise ShapeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
        )
    have = (ONE,) * added + layout.sizes
    return contiguous(size * time for size, time in zip(have, times, strict=True))


def tile(layout: Layout, repeats: Sequence[int | Size]) -> Layout:
    """Layout of `.tile(repeats)`: a repeat with missing leading repeats taken as 1."""
    times = sizes_of(repeats)
    return repeat(layout, (ONE,) * (layout.rank - len(times)) + times)


def flip(layout: Layout, axes: Sequence[int]) -> Layout:
    """Layout of `.flip(axes)`, a copy. Raises ShapeError if an axis is out of range or repeated."""
    if len(set(_dimensions(axes, layout.rank))) != len(axes):
        raise ShapeError("flip: a dim appears multiple times in the list of dims")
    return preserve_format(layout)


def roll(layout: Layout, axes: Sequence[int] | None = None) -> Layout:
    """Layout of `.roll(shifts, axes)`, a copy; without axes torch rolls the flattened tensor.

    Raises ShapeError if a dimension is out of range, or for axes of a tensor of rank 0.
    """
    if not axes:
        return contiguous(layout.sizes)
    _dimensions(axes, layout.rank)
    if not layout.rank:
        raise ShapeError("roll: the tensor has no dimensions")
    # torch concatenates two slices, in channels_last if both suggest it, which depends on their lengths.
    if layout.rank not in (4, 5) or layout.strides == contiguous_strides(layout.sizes):
        return contiguous(layout.sizes)
    outside = at_least(layout.strides[1] - layout.strides[-1], 1)
    return contiguous(layout.sizes) if outside else unknown_strides(layout.sizes)
