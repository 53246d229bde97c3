"""TensorIterator: the layout that torch gives to the result of an elementwise operation.

If every operand is contiguous, or all share one dense layout, that layout is kept. Else the dimensions
are ordered by stride, the first operand that disagrees decides, a stride of 0 is no opinion, and the
result is allocated densely in that order.
"""

from __future__ import annotations

from collections.abc import Sequence

from shapefix.tensors.bounds import assuming, at_least, same
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, contiguous, is_contiguous, permuted_dense, unknown_strides
from shapefix.tensors.polynomials import ONE, ZERO, Size
from shapefix.tensors.quotients import maximum

Strides = Sequence[Size | None]
"""Strides over the sizes of a result: 0 where an operand is stretched, None where that is not known."""


def broadcast_sizes(*shapes: tuple[Size, ...]) -> tuple[Size, ...]:
    """The sizes that the shapes broadcast to. Raises ShapeError where they cannot."""
    rank = max(map(len, shapes))
    result = []
    for place in range(-rank, 0):
        size = ONE
        for shape in shapes:
            if -place <= len(shape):
                size = _broadcast_size(size, shape[place], rank + place)
        result.append(size)
    return tuple(result)


def _broadcast_size(one: Size, two: Size, dim: int) -> Size:
    if one is two or one == two or two.value == 1:
        return one
    if one.value == 1:
        return two
    if at_least(one, 2):
        if two.value == 0 or (at_least(two, 2) and same(one, two) is False):
            raise ShapeError(
                f"The size of tensor a ({one}) must match the size of tensor b ({two}) "
                f"at non-singleton dimension {dim}"
            )
        return one
    if at_least(two, 2):
        return _broadcast_size(two, one, dim) if one.value == 0 else two
    if one.value == 0 or two.value == 0:
        return ZERO
    # Equal, or one of them is 1.
    return maximum(one, two)


def _aligned(layout: Layout, sizes: tuple[Size, ...]) -> Strides:
    added = len(sizes) - layout.rank
    strides: list[Size | None] = [ZERO] * added
    for have, stride, want in zip(layout.sizes, layout.strides, sizes[added:], strict=True):
        if have is want or have == want:
            strides.append(stride)
        elif have.value == 1:
            strides.append(ZERO)
        else:
            strides.append(stride if at_least(have, 2) else None)
    return strides


def elementwise(*operands: Layout) -> Layout:
    """The layout of an operation on these operands, broadcast together.

    Strides are unknown where the order of the dimensions is not provable. Raises ShapeError where the
    sizes cannot be broadcast.
    """
    first = operands[0]
    sizes = first.sizes
    if len(operands) > 1:
        sizes = broadcast_sizes(*(operand.sizes for operand in operands))
    if all(operand.sizes == sizes for operand in operands):
        if all(is_contiguous(operand) is True for operand in operands):
            return contiguous(sizes)
        if all(operand.strides == first.strides for operand in operands) and is_dense(first):
            return first
    return allocated(sizes, [_aligned(operand, sizes) for operand in operands])


def allocated(sizes: tuple[Size, ...], operands: Sequence[Strides]) -> Layout:
    """The layout of a result of these sizes, ordered by the strides that the operands have over them."""
    order = dense_order(sizes, operands)
    return unknown_strides(sizes) if order is None else permuted_dense(sizes, order)


def is_dense(layout: Layout) -> bool:
    """Whether the tensor provably fills its memory without gaps or overlap, in any order of dimensions."""
    pending = [
        (size, stride)
        for size, stride in zip(reversed(layout.sizes), reversed(layout.strides), strict=True)
        if size.value not in (0, 1)
    ]
    expected = ONE
    while pending:
        for place, (size, stride) in enumerate(pending):
            if stride is expected or stride == expected:
                expected = expected * size
                del pending[place]
                break
        else:
            return False
    return True


def dense_order(sizes: tuple[Size, ...], operands: Sequence[Strides]) -> list[int] | None:
    """The order, outermost first, in which TensorIterator puts the dimensions; None where unknown."""
    rank = len(sizes)
    dims = list(range(rank))
    if any(stride is None or stride.value is None for strides in operands for stride in strides):
        dims = [dim for dim in dims if sizes[dim].value != 1]
    order = dims[::-1]
    for start in range(1, len(order)):
        moving = start
        for place in range(start - 1, -1, -1):
            one, two = order[place], order[moving]
            answer = _should_swap(sizes, operands, one, two)
            if answer is None:
                return None
            if answer > 0:
                order[place], order[moving] = two, one
                moving = place
            elif answer < 0:
                break
    order.reverse()
    if order == dims:
        return list(range(rank))
    # Where dimensions of size 1 lie has no effect on the others.
    for dim in sorted(set(range(rank)) - set(dims)):
        order.insert(dim, dim)
    return order


def _should_swap(sizes: tuple[Size, ...], operands: Sequence[Strides], one: int, two: int) -> int | None:
    """-1 where dimension one lies inside of two, 1 where outside, 0 where nothing tells, None if unknown."""
    bounds = None
    for strides in operands:
        inner, outer = strides[one], strides[two]
        if inner is None or outer is None:
            return None
        if inner.value == 0 or outer.value == 0:
            continue
        if inner.value is not None and outer.value is not None:
            if inner.value != outer.value:
                return -1 if inner.value < outer.value else 1
        else:
            # A dimension of size 1 may lie anywhere.
            bounds = bounds or assuming([sizes[one], sizes[two]], 2)
            if at_least(outer - inner, 1, bounds):
                return -1
            if at_least(inner - outer, 1, bounds):
                return 1
            if same(inner, outer, bounds) is not True:
                return None
        larger = at_least(sizes[one] - sizes[two], 1)
        if larger is None:
            return None
        if larger:
            return 1
    return 0
