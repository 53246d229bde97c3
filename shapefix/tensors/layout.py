"""Layouts: the sizes of a tensor, and its strides, counted in elements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shapefix.tensors.bounds import NO_BOUNDS, Bounds, at_least, same
from shapefix.tensors.errors import NoSuchDimension, ShapeError
from shapefix.tensors.polynomials import ONE, Size, product
from shapefix.tensors.quotients import substitute as _substitute
from shapefix.tensors.symbols import OpaqueStride, Symbol


@dataclass(frozen=True, slots=True)
class Layout:
    """The sizes of a tensor and its strides, outermost dimension first."""

    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def numel(self) -> Size:
        """The number of elements."""
        return product(self.sizes)

    @property
    def is_constant(self) -> bool:
        """Whether all sizes and strides are numbers."""
        return all(s.value is not None for s in self.sizes) and all(s.value is not None for s in self.strides)

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.sizes))}) strides ({', '.join(map(str, self.strides))})"


def sizes_of(sizes: Iterable[int | Size]) -> tuple[Size, ...]:
    """The sizes with plain numbers turned into constants."""
    return tuple(size if isinstance(size, Size) else Size.of(size) for size in sizes)


def wrap_dim(dim: int, rank: int) -> int:
    """dim counted from the front; torch lets rank 0 be indexed with 0 and -1.

    Raises ShapeError where dim is out of range.
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
    """The strides of a contiguous tensor: products of the sizes to the right, zeros counted as ones."""
    strides = []
    stride = ONE
    for size in reversed(sizes):
        strides.append(stride)
        if size.value != 0:
            stride = stride * size
    strides.reverse()
    return tuple(strides)


def contiguous(sizes: Iterable[int | Size]) -> Layout:
    """A contiguous layout of these sizes."""
    given = sizes_of(sizes)
    return Layout(given, contiguous_strides(given))


def permuted_dense(sizes: Iterable[int | Size], order: Sequence[int]) -> Layout:
    """A dense layout of these sizes whose dimensions lie in memory in this order, outermost first."""
    given = sizes_of(sizes)
    strides: list[Size] = [ONE] * len(given)
    stride = ONE
    for dim in reversed(order):
        strides[dim] = stride
        if given[dim].value != 0:
            stride = stride * given[dim]
    return Layout(given, tuple(strides))


def channels_last(sizes: Iterable[int | Size]) -> Layout:
    """A channels_last layout (N, C, H, W), or channels_last_3d for five sizes.

    Raises ShapeError for other ranks.
    """
    given = sizes_of(sizes)
    if len(given) not in (4, 5):
        raise ShapeError(f"required rank 4 tensor to use channels_last format, not rank {len(given)}")
    return permuted_dense(given, (0, *range(2, len(given)), 1))


def unknown_strides(sizes: Iterable[int | Size]) -> Layout:
    """A layout of known sizes whose dimensions do not overlap: in any order, maybe with gaps.

    Each stride is larger than the reach of all the dimensions inside of it, as in every part of a tensor
    that was not expanded or unfolded.
    """
    given = sizes_of(sizes)
    base = object()
    strides = tuple(
        Size.from_symbol(OpaqueStride(f"stride{dim}", base, size)) for dim, size in enumerate(given)
    )
    return Layout(given, strides)


def has_unknown_strides(layout: Layout) -> bool:
    """Whether any stride stems from unknown_strides."""
    return any(
        isinstance(symbol, OpaqueStride)
        for stride in layout.strides
        if stride.value is None
        for symbol in stride.symbols
    )


def is_contiguous(layout: Layout, bounds: Bounds = NO_BOUNDS) -> bool | None:
    """Whether the layout is contiguous, as torch's is_contiguous() says; None where that is not known.

    Strides of dimensions of size 1 do not count, and an empty tensor always is contiguous.
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
                # An empty tensor is contiguous whatever its strides are.
                if all(at_least(other, 1, bounds) for other in layout.sizes):
                    return False
                answer = None
            elif fits is not True:
                answer = None
        expected = expected * size
    return answer


def substitute(layout: Layout, values: Mapping[Symbol, int | Size]) -> Layout:
    """The layout with symbols replaced in sizes and strides."""
    return Layout(
        tuple(_substitute(size, values) for size in layout.sizes),
        tuple(_substitute(stride, values) for stride in layout.strides),
    )
