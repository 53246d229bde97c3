"""Layouts: the sizes of a tensor and its strides, in elements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shapefix.light_dataclasses import dataclass
from shapefix.tensors.bounds import NO_BOUNDS, Bounds, at_least, same
from shapefix.tensors.errors import NoSuchDimension, ShapeError
from shapefix.tensors.polynomials import ONE, Size, product
from shapefix.tensors.quotients import substitute as _substitute
from shapefix.tensors.symbols import OpaqueStride, Symbol


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of a tensor and its strides in elements, in the order of its dimensions."""

    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def numel(self) -> Size:
        """Number of elements."""
        return product(self.sizes)

    @property
    def is_constant(self) -> bool:
        """Check whether all sizes and strides are constants."""
        return all(s.value is not None for s in self.sizes) and all(s.value is not None for s in self.strides)

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.sizes))}) strides ({', '.join(map(str, self.strides))})"


def sizes_of(sizes: Iterable[int | Size]) -> tuple[Size, ...]:
    """Convert ints among the sizes to Sizes."""
    return tuple(size if isinstance(size, Size) else Size.of(size) for size in sizes)


def wrap_dim(dim: int, rank: int) -> int:
    """Convert a dimension, possibly negative, to one counted from the front.

    torch accepts 0 and -1 for rank 0. Raises NoSuchDimension if dim is out of range.
    """
    limit = rank or 1
    if not -limit <= dim < limit:
        raise NoSuchDimension(
            f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})",
            dim,
            rank,
        )
    return dim + limit if dim < 0 else dim


def contiguous_strides(sizes: Sequence[Size]) -> tuple[Size, ...]:
    """Strides of a contiguous tensor: products of the sizes to the right, with 0 counted as 1."""
    strides = []
    stride = ONE
    for size in reversed(sizes):
        strides.append(stride)
        if size.value != 0:
            stride = stride * size
    strides.reverse()
    return tuple(strides)


def contiguous(sizes: Iterable[int | Size]) -> Layout:
    """Contiguous layout of the given sizes."""
    given = sizes_of(sizes)
    return Layout(given, contiguous_strides(given))


def permuted_dense(sizes: Iterable[int | Size], order: Sequence[int]) -> Layout:
    """Dense layout of the given sizes; order lists the dimensions as they lie in memory, outermost first."""
    given = sizes_of(sizes)
    strides: list[Size] = [ONE] * len(given)
    stride = ONE
    for dim in reversed(order):
        strides[dim] = stride
        if given[dim].value != 0:
            stride = stride * given[dim]
    return Layout(given, tuple(strides))


def channels_last(sizes: Iterable[int | Size]) -> Layout:
    """channels_last layout of sizes (N, C, H, W), or channels_last_3d layout of (N, C, D, H, W).

    Raises ShapeError for other ranks.
    """
    given = sizes_of(sizes)
    if len(given) not in (4, 5):
        raise ShapeError(f"required rank 4 tensor to use channels_last format, not rank {len(given)}")
    return permuted_dense(given, (0, *range(2, len(given)), 1))


def unknown_strides(sizes: Iterable[int | Size]) -> Layout:
    """Layout of known sizes and unknown, non-overlapping strides, in any order and maybe with gaps.

    Each stride exceeds the largest offset that the dimensions of smaller stride reach together. This holds
    for every view of a tensor without expand or unfold.
    """
    given = sizes_of(sizes)
    base = object()
    strides = tuple(
        Size.from_symbol(OpaqueStride(f"stride{dim}", base, size)) for dim, size in enumerate(given)
    )
    return Layout(given, strides)


def has_unknown_strides(layout: Layout) -> bool:
    """Check for a stride from unknown_strides."""
    return any(
        isinstance(symbol, OpaqueStride)
        for stride in layout.strides
        if stride.value is None
        for symbol in stride.symbols
    )


def is_contiguous(layout: Layout, bounds: Bounds = NO_BOUNDS) -> bool | None:
    """Result of torch's `is_contiguous()`; None if unknown.

    Strides of dimensions of size 1 do not count, and an empty tensor is always contiguous.
    """
    if any(size.value == 0 for size in layout.sizes):
        return True
    expected = ONE
    answer: bool | None = True
    for size, stride in zip(reversed(layout.sizes), reversed(layout.strides), strict=True):
        if size.value == 1:
            continue
        if stride != expected:
            fits = same(stride, expected, bounds)
            if fits is False and at_least(size, 2, bounds):
                # An empty tensor is contiguous with any strides.
                if all(at_least(other, 1, bounds) for other in layout.sizes):
                    return False
                answer = None
            elif fits is not True:
                answer = None
        expected = expected * size
    return answer


def substitute(layout: Layout, values: Mapping[Symbol, int | Size]) -> Layout:
    """Replace symbols in sizes and strides. Raises ZeroDivisionError if a divisor becomes 0."""
    return Layout(
        tuple(_substitute(size, values) for size in layout.sizes),
        tuple(_substitute(stride, values) for stride in layout.strides),
    )
