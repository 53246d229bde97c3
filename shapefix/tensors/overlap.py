"""Memory overlap of the dimensions of a tensor, and layouts of unknown strides."""

from __future__ import annotations

from collections.abc import Iterable

from shapefix.tensors.bounds import assume_at_least, at_least
from shapefix.tensors.layout import Layout, sizes_of, unknown_strides
from shapefix.tensors.polynomials import ONE, Size, divide
from shapefix.tensors.symbols import OpaqueStride


def any_strides(sizes: Iterable[int | Size]) -> Layout:
    """Layout of known sizes and arbitrary strides: dimensions may overlap and strides may be 0."""
    given = sizes_of(sizes)
    return Layout(given, tuple(Size.symbol(f"stride{dim}", 0) for dim in range(len(given))))


def unknown_view(sizes: Iterable[int | Size], source: Layout) -> Layout:
    """Layout of a view of source with unknown strides; it may overlap only if source may."""
    return unknown_strides(sizes) if never_overlaps(source) else any_strides(sizes)


def never_overlaps(layout: Layout) -> bool:
    """Check that each stride provably exceeds the largest offset within all dimensions of smaller stride."""
    groups: dict[OpaqueStride | None, list[tuple[Size, Size]]] = {}
    for size, stride in zip(layout.sizes, layout.strides, strict=True):
        if size.value == 1:
            continue
        opaque = {symbol for symbol in stride.symbols if isinstance(symbol, OpaqueStride)}
        if len(opaque) > 1 or stride.value == 0:
            return False
        # The dimensions of one unknown layout do not overlap, so each of its strides is checked on its own.
        base = opaque.pop() if opaque else None
        scale = divide(stride, Size.from_symbol(base)) if base is not None else stride
        if scale is None:
            return False
        groups.setdefault(base, []).append((size, scale))
    if len({base.base if base is not None else None for base in groups}) > 1:
        return False
    return all(_nested(dims) for dims in groups.values())


def _nested(dims: list[tuple[Size, Size]]) -> bool:
    bounds = assume_at_least([size for size, _ in dims], 1)
    pending = list(dims)
    reach = ONE
    while pending:
        for place, (size, stride) in enumerate(pending):
            # The innermost remaining dimension: no other one has a smaller stride.
            if all(at_least(other - stride, 0, bounds) for _, other in pending):
                if not at_least(stride - reach, 0, bounds):
                    return False
                reach = reach + (size - 1) * stride
                del pending[place]
                break
        else:
            return False
    return True
