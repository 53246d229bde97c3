"""Indexing: layouts of `x[...]` and of select, narrow, chunk, split, unbind, diagonal and unfold.

Sizes are those of nonempty results: `x[:, 2:]` has size T - 2, which assumes that T exceeds 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

from shapefix.light_dataclasses import dataclass
from shapefix.tensors.bounds import assume_at_least, at_least, same
from shapefix.tensors.errors import IndexOutOfRange, ShapeError, SizeMismatch, TooManyIndices, WrongParts
from shapefix.tensors.layout import Layout, contiguous, sizes_of, wrap_dim
from shapefix.tensors.polynomials import ONE, ZERO, Size
from shapefix.tensors.quotients import ceil_divide, floor_divide, maximum, minimum
from shapefix.tensors.tensor_iterator import Strides, aligned, allocated, broadcast_sizes
from shapefix.tensors.views import reshape


@dataclass(frozen=True, slots=True)
class IntegerIndex:
    """Integer tensor or list of integers as an index."""

    layout: Layout


@dataclass(frozen=True, slots=True)
class BooleanIndex:
    """Boolean tensor (mask) or list of booleans as an index."""

    sizes: tuple[Size, ...]


Spec = int | Size | slice | None | EllipsisType | IntegerIndex | BooleanIndex
"""One entry of an index. The parts of a slice are ints, Sizes or None."""


def index(layout: Layout, specs: Sequence[Spec]) -> Layout:
    """Layout of `x[specs]`: a view for basic entries, a copy if one entry is a tensor or list.

    The number of elements that a mask selects is a new symbol, which may be 0. Raises ShapeError for too many
    entries, an entry that is provably out of range, or a mask of sizes that provably differ.
    """
    sizes: list[Size] = []
    strides: list[Size] = []
    advanced: dict[int, IntegerIndex | BooleanIndex] = {}
    taken = sum(_width(spec) for spec in specs)
    if taken > layout.rank:
        raise TooManyIndices(f"too many indices for tensor of dimension {layout.rank}", layout.rank, taken)
    if sum(spec is Ellipsis for spec in specs) > 1:
        raise ShapeError("an index can only have a single ellipsis")
    dim = 0
    for spec in specs:
        width = layout.rank - taken if spec is Ellipsis else _width(spec)
        if spec is None:
            sizes.append(ONE)
            strides.append(layout.sizes[dim] * layout.strides[dim] if dim < layout.rank else ONE)
        elif isinstance(spec, slice):
            size, stride = _sliced(layout.sizes[dim], layout.strides[dim], spec)
            sizes.append(size)
            strides.append(stride)
        elif isinstance(spec, int | Size):
            _check_index(layout.sizes[dim], spec, dim)
        else:
            if isinstance(spec, IntegerIndex | BooleanIndex):
                advanced[len(sizes)] = spec
            sizes.extend(layout.sizes[dim : dim + width])
            strides.extend(layout.strides[dim : dim + width])
            if isinstance(spec, BooleanIndex):
                _check_mask(spec, layout.sizes[dim : dim + width], dim)
                if not width:
                    sizes.append(ONE)
                    strides.append(ONE)
        dim += width
    basic = Layout((*sizes, *layout.sizes[dim:]), (*strides, *layout.strides[dim:]))
    return _gathered(basic, advanced) if advanced else basic


def _width(spec: Spec) -> int:
    """Number of the tensor's dimensions consumed by an index entry."""
    if spec is None or spec is Ellipsis:
        return 0
    return len(spec.sizes) if isinstance(spec, BooleanIndex) else 1


def _check_index(size: Size, index: int | Size, dim: int) -> None:
    index = Size.of(index)
    if at_least(index, 0):
        inside = at_least(size - index, 1)
    elif at_least(index, 0) is False:
        inside = at_least(size + index, 0)
    else:
        return
    if inside is False:
        message = f"index {index} is out of bounds for dimension {dim} with size {size}"
        raise IndexOutOfRange(message, index, size, dim)


def _check_mask(mask: BooleanIndex, sizes: tuple[Size, ...], dim: int) -> None:
    for place, (have, want) in enumerate(zip(mask.sizes, sizes, strict=True)):
        if same(have, want) is False:
            message = (
                f"the shape of the mask at index {place}, {have}, does not match the shape of the indexed "
                f"tensor at index {dim + place}, {want}"
            )
            raise SizeMismatch(message, have, want, place, operand=1, other=0, other_dim=dim + place)


def _sliced(size: Size, stride: Size, part: slice) -> tuple[Size, Size]:
    """Size and stride of a dimension after a slice. Raises ShapeError for a step below 1."""
    step = Size.of(1 if part.step is None else part.step)
    if at_least(step, 1) is False:
        raise ShapeError("slice step must be positive")
    length = _length(size, part)
    if step.value == 1:
        return length, stride
    if step.value is None and at_least(step, 1) is not True:
        return Size.symbol("length"), stride * step
    return ceil_divide(length, step), stride * step


def range_length(numbers: range) -> int:
    """Length of a range; `len` raises OverflowError from 2**63 on."""
    distance = numbers.stop - numbers.start
    return max(-(-distance // numbers.step), 0)


def _length(size: Size, part: slice) -> Size:
    start = ZERO if part.start is None else Size.of(part.start)
    stop = size if part.stop is None else Size.of(part.stop)
    if size.value is not None and start.value is not None and stop.value is not None:
        # Of code that torch rejects, a size may be below zero.
        bounds = slice(start.value, stop.value).indices(max(size.value, 0))
        return Size.of(range_length(range(*bounds)))
    first = _from_front(size, start)
    last = size if part.stop is None else _from_front(size, stop)
    if first is None or last is None:
        return Size.symbol(str(stop) if part.start is None and stop.only_symbol else "length")
    if first is not start:
        if part.stop is None:
            return minimum(-start, size, assume_at_least([size], 1))
        first = maximum(first, 0)
    length = minimum(last, size, assume_at_least([size], 1)) - first
    if at_least(length, 1) is False:
        return ZERO
    # `x[:, 3:4]` has one element at most.
    return ONE if (last - first).value == 1 else length


def _from_front(size: Size, place: Size) -> Size | None:
    """Index counted from the front; None if its sign is unknown."""
    if at_least(place, 0):
        return place
    return size + place if at_least(place, 0) is False else None


def _gathered(basic: Layout, advanced: dict[int, IntegerIndex | BooleanIndex]) -> Layout:
    """Layout of advanced indexing: basic is the result of the basic entries, advanced maps its dimensions."""
    at: list[int] = []
    tensors: list[Layout] = []
    for dim, spec in advanced.items():
        if isinstance(spec, IntegerIndex):
            at.append(dim)
            tensors.append(spec.layout)
        else:
            count = Size.symbol("selected", 0)
            for place in range(max(1, len(spec.sizes))):
                at.append(dim + place)
                tensors.append(Layout((count,), (ONE,)))
    shape = broadcast_sizes(*(tensor.sizes for tensor in tensors))
    rest = [dim for dim in range(basic.rank) if dim not in at]
    # Adjacent indexed dimensions stay in place; separated ones move to the front.
    before = at[0] if at[-1] - at[0] + 1 == len(at) else 0
    front, back = rest[:before], rest[before:]
    sizes = (*(basic.sizes[d] for d in front), *shape, *(basic.sizes[d] for d in back))
    source = (*(basic.strides[d] for d in front), *(ZERO for _ in shape), *(basic.strides[d] for d in back))
    operands: list[Strides] = [source]
    # torch pads an index with dimensions of size 1, whose strides take part in the order of dimensions.
    around = [reshape(tensor, (*[ONE] * before, *tensor.sizes, *[ONE] * len(back))) for tensor in tensors]
    operands += [aligned(tensor, sizes) for tensor in around]
    return allocated(sizes, operands)


def select(layout: Layout, dim: int, place: int | Size) -> Layout:
    """Layout of `.select(dim, place)`. Raises ShapeError if dim or place is out of range, or for rank 0."""
    if not layout.rank:
        raise ShapeError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, layout.rank)
    _check_index(layout.sizes[dim], place, dim)
    rest = [other for other in range(layout.rank) if other != dim]
    return Layout(tuple(layout.sizes[d] for d in rest), tuple(layout.strides[d] for d in rest))


def narrow(layout: Layout, dim: int, start: int | Size, length: int | Size) -> Layout:
    """Layout of `.narrow(dim, start, length)`.

    Raises ShapeError if dim is out of range, length is negative, or the range provably exceeds the dimension.
    """
    if not layout.rank:
        raise ShapeError("narrow() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, layout.rank)
    size, first = layout.sizes[dim], _from_front(layout.sizes[dim], Size.of(start))
    if at_least(length, 0) is False:
        raise ShapeError("narrow(): length must be non-negative.")
    if first is not None and at_least(size - first - length, 0) is False:
        raise ShapeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return _resized(layout, dim, Size.of(length))


def _resized(layout: Layout, dim: int, size: Size) -> Layout:
    return Layout((*layout.sizes[:dim], size, *layout.sizes[dim + 1 :]), layout.strides)


def chunk(layout: Layout, chunks: int, dim: int = 0) -> tuple[Layout, ...]:
    """Layouts of `.chunk(chunks, dim)`; for a symbolic size always `chunks` of them.

    Raises ShapeError if dim is out of range or chunks is not positive.
    """
    if not layout.rank:
        raise ShapeError("chunk expects at least a 1-dimensional tensor")
    if chunks < 1:
        raise ShapeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrap_dim(dim, layout.rank)
    size = layout.sizes[dim]
    each = ceil_divide(size, chunks)
    if size.value is not None:
        if size.value == 0:
            return (layout,) * chunks
        pieces = split(layout, each, dim)
        assert pieces is not None
        return pieces
    last = floor_divide(size, 2) if chunks == 2 else size - (chunks - 1) * each
    return (*(_resized(layout, dim, each) for _ in range(chunks - 1)), _resized(layout, dim, last))


def split(layout: Layout, size: int | Size | Sequence[int | Size], dim: int = 0) -> tuple[Layout, ...] | None:
    """Layouts of `.split(size, dim)`; None if their number is unknown.

    Raises ShapeError if dim is out of range, or a list of sizes provably does not add up to the dimension.
    """
    if not layout.rank:
        raise ShapeError("split expects at least a 1-dimensional tensor")
    dim = wrap_dim(dim, layout.rank)
    whole = layout.sizes[dim]
    if isinstance(size, int | Size):
        each = Size.of(size)
        if each.value == 0 and whole.value == 0:
            return (layout,)
        if at_least(each, 1) is False:
            raise ShapeError(f"split expects split_size be positive, but got split_size={each}")
        if each == whole:
            return (layout,)
        count = ceil_divide(whole, each).value if each.value != 0 else None
        if count is None:
            return None
        if count == 0:
            return (layout,)
        pieces = [each] * (count - 1)
        return tuple(_resized(layout, dim, piece) for piece in [*pieces, whole - (count - 1) * each])
    given = sizes_of(size)
    if any(at_least(piece, 0) is False for piece in given):
        raise ShapeError("split_with_sizes expects split_sizes have only non-negative entries")
    if same(sum(given, ZERO), whole) is False:
        raise WrongParts(
            f"split_with_sizes expects split_sizes to sum exactly to {whole} (the size of dimension "
            f"{dim}), but got split_sizes=[{', '.join(map(str, given))}]",
            whole,
            dim,
            given,
        )
    return tuple(_resized(layout, dim, piece) for piece in given)


def unbind(layout: Layout, dim: int = 0) -> tuple[Layout, ...] | None:
    """Layouts of `.unbind(dim)`; None if their number is unknown.

    Raises ShapeError if dim is out of range.
    """
    if not layout.rank:
        raise ShapeError("unbind() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, layout.rank)
    count = layout.sizes[dim].value
    return None if count is None else tuple(select(layout, dim, place) for place in range(count))


def diagonal(layout: Layout, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Layout:
    """Layout of `.diagonal(offset, dim1, dim2)`.

    Raises ShapeError if the two dimensions are the same or one is out of range.
    """
    one, two = wrap_dim(dim1, layout.rank), wrap_dim(dim2, layout.rank)
    if one == two:
        raise ShapeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = layout.sizes[one], layout.sizes[two]
    size = minimum(rows, columns - offset) if offset >= 0 else minimum(rows + offset, columns)
    if at_least(size, 1) is False:
        size = ZERO
    rest = [dim for dim in range(layout.rank) if dim not in (one, two)]
    return Layout(
        (*(layout.sizes[dim] for dim in rest), size),
        (*(layout.strides[dim] for dim in rest), layout.strides[one] + layout.strides[two]),
    )


def unfold(layout: Layout, dim: int, size: int | Size, step: int | Size) -> Layout:
    """Layout of `.unfold(dim, size, step)`: windows along dim, with a new last dimension for their elements.

    Raises ShapeError if dim is out of range, step is not positive, or the window is provably larger than the
    dimension.
    """
    dim = wrap_dim(dim, layout.rank)
    width, step = Size.of(size), Size.of(step)
    have, stride = (layout.sizes[dim], layout.strides[dim]) if layout.rank else (ONE, ONE)
    if at_least(have - width, 0) is False:
        raise ShapeError(f"maximum size for tensor at dimension {dim} is {have} but size is {width}")
    if at_least(step, 1) is False:
        raise ShapeError(f"step is {step} but must be > 0")
    if not layout.rank:
        return contiguous([width])
    windows = floor_divide(have - width, step) + 1
    return Layout(
        (*layout.sizes[:dim], windows, *layout.sizes[dim + 1 :], width),
        (*layout.strides[:dim], stride * step, *layout.strides[dim + 1 :], stride),
    )
