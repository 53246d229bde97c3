"""Operations copying elements into a new tensor: cat, stack, gather, scatter, pad, one_hot, masks."""

from __future__ import annotations

from collections.abc import Sequence

from shapefix.tensors.bounds import at_least
from shapefix.tensors.dims import unsqueeze
from shapefix.tensors.errors import ShapeError, SizeMismatch, WrongRank
from shapefix.tensors.layout import (
    Layout,
    contiguous,
    has_unknown_strides,
    sizes_of,
    unknown_strides,
    wrap_dim,
)
from shapefix.tensors.memory_format import in_suggested_format, suggests_channels_last
from shapefix.tensors.options import provably_differ
from shapefix.tensors.polynomials import Size
from shapefix.tensors.tensor_iterator import broadcast_sizes, check_expands_to
from shapefix.tensors.verdicts import Legal
from shapefix.tensors.views import unflatten


def cat(layouts: Sequence[Layout], dim: int = 0) -> Layout:
    """Layout of `torch.cat(tensors, dim)`: contiguous, or channels_last if all inputs are.

    Raises ShapeError for an empty list, different ranks, or sizes other than dim that provably differ.
    """
    if not layouts:
        raise ShapeError("torch.cat(): expected a non-empty list of Tensors")
    # torch ignores tensors of shape (0,), regardless of the other shapes.
    parts = [layout for layout in layouts if not (layout.rank == 1 and layout.sizes[0].value == 0)]
    if not parts:
        return layouts[0]
    for number, layout in enumerate(layouts):
        if not layout.rank:
            message = f"zero-dimensional tensor (at position {number}) cannot be concatenated"
            raise WrongRank(message, 0, (max(part.rank for part in parts) or 1,), number)
    first = parts[0]
    front = next(number for number, layout in enumerate(layouts) if layout is first)
    dim = wrap_dim(dim, first.rank)
    sizes = list(first.sizes)
    for part in parts[1:]:
        operand = next(number for number, layout in enumerate(layouts) if layout is part)
        if part.rank != first.rank:
            message = f"Tensors must have same number of dimensions: got {first.rank} and {part.rank}"
            raise WrongRank(message, part.rank, (first.rank,), operand)
        for place, (have, want) in enumerate(zip(part.sizes, first.sizes, strict=True)):
            if place == dim:
                sizes[dim] = sizes[dim] + have
            elif provably_differ(have, want):
                raise SizeMismatch(
                    f"Sizes of tensors must match except in dimension {dim}: expected {want} but got "
                    f"{have} in dimension {place}",
                    have,
                    want,
                    place,
                    operand=operand,
                    other=front,
                    other_dim=place,
                )
    return in_suggested_format(sizes, *layouts)


def stack(layouts: Sequence[Layout], dim: int = 0) -> Layout:
    """Layout of `torch.stack(tensors, dim)`.

    Raises ShapeError for an empty list, different ranks, or sizes that provably differ.
    """
    if not layouts:
        raise ShapeError("stack expects a non-empty TensorList")
    first = layouts[0]
    dim = wrap_dim(dim, first.rank + 1)
    for entry, layout in enumerate(layouts):
        message = (
            f"stack expects each tensor to be equal size, but got {_shape(first)} at entry 0 and "
            f"{_shape(layout)} at entry {entry}"
        )
        if layout.rank != first.rank:
            raise WrongRank(message, layout.rank, (first.rank,), entry)
        for place, (have, want) in enumerate(zip(layout.sizes, first.sizes, strict=True)):
            if provably_differ(have, want):
                raise SizeMismatch(message, have, want, place, operand=entry, other=0, other_dim=place)
    sizes = (*first.sizes[:dim], Size.of(len(layouts)), *first.sizes[dim:])
    if dim == first.rank:
        return cat([unsqueeze(layout, dim) for layout in layouts], dim)
    if any(suggests_channels_last(layout) is not False for layout in layouts):
        joined = cat(layouts, dim)
        verdict = unflatten(joined, dim, [len(layouts), first.sizes[dim]])
        if isinstance(verdict, Legal) and not has_unknown_strides(joined):
            return verdict.layout
        return unknown_strides(sizes)
    return contiguous(sizes)


def _shape(layout: Layout) -> str:
    return f"[{', '.join(map(str, layout.sizes))}]"


def padded_sequences(layouts: Sequence[Layout]) -> tuple[Size, ...]:
    """Sizes shared by the sequences of pad_sequence after their first dimension.

    These are the sizes of the first sequence; the others must expand to them. Raises ShapeError for a
    sequence of rank 0, or one with provably different sizes after its first dimension.
    """
    first = layouts[0]
    for number, layout in enumerate(layouts):
        if not layout.rank:
            raise WrongRank("pad_sequence takes tensors of at least 1 dimension", 0, (1, 2, 3), number)
        if layout.rank > first.rank:
            message = f"pad_sequence: {layout.rank} dimensions, the first sequence has {first.rank}"
            raise WrongRank(message, layout.rank, (first.rank,), number)
        check_expands_to((layout.sizes[0], *first.sizes[1:]), layout.sizes, number, 0)
    return first.sizes[1:]


def gather(layout: Layout, dim: int, index: Layout) -> Layout:
    """Layout of `.gather(dim, index)`: contiguous, with the sizes of the index.

    Raises ShapeError if dim is out of range, the ranks differ, or the index is provably larger than the
    tensor in a dimension other than dim.
    """
    dim = wrap_dim(dim, layout.rank)
    check_index(layout, dim, index)
    return contiguous(index.sizes)


def check_index(layout: Layout, dim: int, index: Layout) -> None:
    """Check the index of a gather or scatter along dim.

    Raises ShapeError about operand 1 if its rank differs from the tensor's, or it is provably larger than the
    tensor in a dimension other than dim.
    """
    if max(layout.rank, 1) != max(index.rank, 1) and index.numel.value != 0:
        message = "Index tensor must have the same number of dimensions as input tensor"
        raise WrongRank(message, index.rank, (layout.rank,), 1)
    for place in range(min(layout.rank, index.rank)):
        have, most = index.sizes[place], layout.sizes[place]
        if place != dim and index.numel.value != 0 and at_least(most - have, 0) is False:
            raise SizeMismatch(
                f"Size does not match at dimension {place}: index {_shape(index)} must be no larger than "
                f"self {_shape(layout)} apart from dimension {dim}",
                have,
                most,
                place,
                operand=1,
                other=0,
                other_dim=place,
            )


def scatter(layout: Layout, dim: int, index: Layout, source: Layout | None = None) -> Layout:
    """Layout of `.scatter(dim, index, source)`: contiguous, with the sizes of the tensor.

    source is None for a scalar. Raises ShapeError if dim is out of range, the ranks differ, or the index is
    provably larger than the tensor in a dimension other than dim, or than the source in any dimension.
    """
    dim = wrap_dim(dim, layout.rank)
    check_index(layout, dim, index)
    if source is not None and index.numel.value != 0:
        if max(source.rank, 1) != max(index.rank, 1):
            message = "Index tensor must have the same number of dimensions as src tensor"
            raise WrongRank(message, source.rank, (index.rank,), 2)
        for place in range(min(source.rank, index.rank)):
            have, least = source.sizes[place], index.sizes[place]
            if at_least(have - least, 0) is False:
                raise SizeMismatch(
                    f"Expected index {_shape(index)} to be no larger size than src {_shape(source)}",
                    have,
                    least,
                    place,
                    operand=2,
                    other=1,
                    other_dim=place,
                )
    return contiguous(layout.sizes)


def index_add(layout: Layout, dim: int, index: Layout, source: Layout) -> Layout:
    """Layout of `.index_add(dim, index, source)` and `.index_copy`: contiguous, with the tensor's sizes.

    Raises ShapeError if dim is out of range, the index has more than one dimension, or the sizes of the
    source provably differ: in dim from the number of indices, elsewhere from the tensor's.
    """
    dim = wrap_dim(dim, layout.rank)
    if index.rank > 1:
        raise WrongRank("Index is supposed to be a vector", index.rank, (0, 1), 1)
    if source.rank and layout.rank:
        if source.rank != layout.rank:
            message = f"source has {source.rank} dimensions, self has {layout.rank}"
            raise WrongRank(message, source.rank, (layout.rank,), 2)
        for place, (have, want) in enumerate(zip(source.sizes, layout.sizes, strict=True)):
            other = 1 if place == dim else 0
            wanted = index.numel if place == dim else want
            if provably_differ(have, wanted):
                raise SizeMismatch(
                    f"source {_shape(source)} does not fit self {_shape(layout)} and {index.numel} indices",
                    have,
                    wanted,
                    place,
                    operand=2,
                    other=other,
                    other_dim=0 if other else place,
                )
    return contiguous(layout.sizes)


def index_select(layout: Layout, dim: int, index: Layout) -> Layout:
    """Layout of `.index_select(dim, index)`.

    Raises ShapeError if dim is out of range or the index has more than one dimension.
    """
    dim = wrap_dim(dim, layout.rank)
    if index.rank > 1:
        raise WrongRank("index_select(): Index is supposed to be a vector", index.rank, (0, 1), 1)
    if not layout.rank:
        return layout
    return contiguous((*layout.sizes[:dim], index.numel, *layout.sizes[dim + 1 :]))


def one_hot(layout: Layout, classes: int | Size | None = None) -> Layout:
    """Layout of `F.one_hot(tensor, classes)`; the last size is a new symbol if classes is None or -1."""
    if classes is None or Size.of(classes).value == -1:
        classes = Size.symbol("classes")
    return contiguous((*layout.sizes, classes))


def repeat_interleave(layout: Layout, repeats: int | Size, dim: int | None = None) -> Layout:
    """Layout of `.repeat_interleave(repeats, dim)` for a single number of repeats; flat if dim is None.

    Raises ShapeError if dim is out of range.
    """
    if dim is None:
        return contiguous([layout.numel * repeats])
    dim = wrap_dim(dim, layout.rank)
    if not layout.rank:
        return contiguous([repeats])
    return contiguous((*layout.sizes[:dim], layout.sizes[dim] * repeats, *layout.sizes[dim + 1 :]))


def pad(layout: Layout, widths: Sequence[int | Size]) -> Layout:
    """Layout of `F.pad(tensor, widths)`; widths are (before, after) pairs, last dimension first.

    Raises ShapeError for an odd number of widths, too many of them, or a result of negative size.
    """
    given = sizes_of(widths)
    if len(given) % 2:
        raise ShapeError("Padding length must be divisible by 2")
    if len(given) > 2 * layout.rank:
        raise ShapeError("Padding length too large")
    sizes = list(layout.sizes)
    for place in range(len(given) // 2):
        dim = layout.rank - 1 - place
        sizes[dim] = sizes[dim] + given[2 * place] + given[2 * place + 1]
        if at_least(sizes[dim], 0) is False:
            raise ShapeError(f"padding results in the negative size {sizes[dim]} of dimension {dim}")
    return in_suggested_format(sizes, layout)


def masked_fill(layout: Layout, mask: Layout) -> Layout:
    """Layout of `.masked_fill(mask, value)`. Raises ShapeError if the two provably do not broadcast."""
    return contiguous(broadcast_sizes(layout.sizes, mask.sizes))


def masked_select(layout: Layout, mask: Layout) -> Layout:
    """Layout of `.masked_select(mask)`: one dimension of a new symbolic size, 0 or more.

    Raises ShapeError if the two provably do not broadcast.
    """
    broadcast_sizes(layout.sizes, mask.sizes)
    return contiguous([Size.symbol("selected", 0)])
