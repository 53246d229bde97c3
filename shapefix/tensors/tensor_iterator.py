"""TensorIterator: broadcasting, and the layout of the result of an elementwise operation.

If all operands are contiguous, or all share one dense layout, the result keeps that layout. Otherwise torch
orders the dimensions by stride and allocates the result densely in that order. The first operand with
different strides for a pair of dimensions decides; strides of 0 are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from shapefix.tensors.bounds import assume_at_least, at_least, same
from shapefix.tensors.errors import SizeMismatch, WrongRank
from shapefix.tensors.layout import Layout, contiguous, is_contiguous, permuted_dense, unknown_strides
from shapefix.tensors.polynomials import ONE, ZERO, Size
from shapefix.tensors.quotients import maximum

Strides = Sequence[Size | None]
"""Strides over the dimensions of a result: 0 for a broadcast operand, None if unknown."""


def broadcast_sizes(*shapes: tuple[Size, ...]) -> tuple[Size, ...]:
    """Sizes after broadcasting the shapes.

    Raises SizeMismatch for the last dimension in which two sizes provably do not broadcast.
    """
    rank = max(map(len, shapes))
    result = []
    for place in range(-1, -rank - 1, -1):
        size, owner = ONE, 0
        for number, shape in enumerate(shapes):
            if -place > len(shape):
                continue
            if _clash(size, shape[place]):
                raise _mismatch(shapes, owner, number, place)
            together = _broadcast_size(size, shape[place])
            if together is not size:
                size, owner = together, number
        result.append(size)
    return tuple(reversed(result))


def _clash(one: Size, two: Size) -> bool:
    """Check that two sizes provably do not broadcast."""
    if one is two or one == two or one.value == 1 or two.value == 1:
        return False
    if one.value == 0 or two.value == 0:
        return at_least(two if one.value == 0 else one, 2) is True
    return at_least(one, 2) is True and at_least(two, 2) is True and same(one, two) is False


def _broadcast_size(one: Size, two: Size) -> Size:
    """Result of broadcasting two compatible sizes."""
    if one is two or one == two or two.value == 1:
        return one
    if one.value == 1:
        return two
    if one.value == 0 or two.value == 0:
        return ZERO
    if at_least(one, 2):
        return one
    # The sizes are equal or one of them is 1.
    return two if at_least(two, 2) else maximum(one, two)


def _mismatch(shapes: Sequence[tuple[Size, ...]], one: int, two: int, place: int) -> SizeMismatch:
    """Error for two shapes not broadcastable in the dimension at place, counted from the end."""
    have, want = shapes[one][place], shapes[two][place]
    dim, other_dim = len(shapes[one]) + place, len(shapes[two]) + place
    message = (
        f"The size of tensor a ({have}) must match the size of tensor b ({want}) "
        f"at non-singleton dimension {max(map(len, shapes)) + place}"
    )
    return SizeMismatch(message, have, want, dim, operand=one, other=two, other_dim=other_dim)


def mismatch_unless_one(*shapes: tuple[Size, ...]) -> SizeMismatch | None:
    """Error for the first two provably different sizes, broadcastable if one of them is 1.

    The conditions of the error are the sizes that must exceed 1 for torch to raise. None if there are no such
    sizes.
    """
    for place in range(-1, -max(map(len, shapes)) - 1, -1):
        reaching = [number for number, shape in enumerate(shapes) if -place <= len(shape)]
        for one, two in combinations(reaching, 2):
            sizes = shapes[one][place], shapes[two][place]
            if any(size.value in (0, 1) for size in sizes) or same(*sizes) is not False:
                continue
            error = _mismatch(shapes, one, two, place)
            error.conditions = tuple(size for size in sizes if not at_least(size, 2))
            return error
    return None


def check_expands_to(
    target: tuple[Size, ...], source: tuple[Size, ...], operand: int = 1, other: int | None = 0
) -> None:
    """Check that the sizes source expand to the sizes target, as in a copy.

    operand is the operand number of source, other that of target, or None if target is not an operand. Raises
    ShapeError if source provably does not expand.
    """
    if len(source) > len(target):
        message = f"output with {len(target)} dimensions doesn't match the broadcast of {len(source)}"
        raise WrongRank(message, len(source), tuple(range(len(target) + 1)), operand)
    for place in range(-1, -len(source) - 1, -1):
        have, want = source[place], target[place]
        if have.value != 1 and same(have, want) is False and (at_least(have, 2) or have.value == 0):
            raise SizeMismatch(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}) at "
                f"non-singleton dimension {len(target) + place}",
                have,
                want,
                len(source) + place,
                operand=operand,
                other=other,
                other_dim=len(target) + place,
            )


def aligned(layout: Layout, sizes: tuple[Size, ...]) -> Strides:
    """Strides of an operand over its broadcast sizes."""
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
    """Layout of an elementwise operation on the operands, with broadcasting.

    Strides are unknown if the order of the dimensions cannot be proved. Raises ShapeError if the sizes
    provably do not broadcast.
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
    if any(_orders_if_one(operand, sizes) for operand in operands):
        return unknown_strides(sizes)
    return allocated(sizes, [aligned(operand, sizes) for operand in operands])


def _orders_if_one(operand: Layout, sizes: tuple[Size, ...]) -> bool:
    """Check an operand for a dimension of size 1 with a stride able to order the others.

    It does where the size of the result is 1, too, and the strides do not decrease: those of the transpose
    of a `[1, 2]`.
    """
    reached = sizes[len(sizes) - operand.rank :]
    kept = any(
        have.value == 1 and want.value is None and not at_least(want, 2)
        for have, want in zip(operand.sizes, reached, strict=True)
    )
    return kept and not _never_swaps(operand.sizes, [operand.strides])


def allocated(sizes: tuple[Size, ...], operands: Sequence[Strides]) -> Layout:
    """Layout of a newly allocated result, its dimensions ordered by the strides of the operands."""
    order = dense_order(sizes, operands)
    if order is None:
        return unknown_strides(sizes)
    result = permuted_dense(sizes, order)
    if order == sorted(order) or all(size.value is not None for size in sizes):
        return result
    # Where a dimension of size 1 is placed among symbolic ones is not known, and later operations sort by it.
    free = unknown_strides(sizes).strides
    strides = (
        other if size.value == 1 else stride
        for size, stride, other in zip(sizes, result.strides, free, strict=True)
    )
    return Layout(result.sizes, tuple(strides))


def is_dense(layout: Layout) -> bool:
    """Check that the tensor is provably dense: without gaps or overlap, in any order of dimensions."""
    if any(size.value == 0 for size in layout.sizes):
        return True
    pending = [
        (size, stride)
        for size, stride in zip(reversed(layout.sizes), reversed(layout.strides), strict=True)
        if size.value != 1
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
    """Order of the dimensions chosen by TensorIterator, outermost first; None if unknown."""
    natural = list(range(len(sizes)))
    if len(sizes) < 2:
        return natural
    exact = all(size.value is not None for size in sizes) and all(
        stride is not None and stride.value is not None for strides in operands for stride in strides
    )
    if exact or all(at_least(size, 2) for size in sizes):
        return _sorted(sizes, operands, natural)
    # A dimension of size 1 may change the order of the others, unless one operand decides everything.
    alone = next((strides for strides in operands if any(s is None or s.value != 0 for s in strides)), None)
    if alone is None:
        return natural
    larger = [dim for dim in natural if sizes[dim].value != 1]
    if all(stride is not None and stride.value != 0 for stride in alone):
        order = _sorted(sizes, [alone], larger)
        if order is not None:
            for dim in natural:
                if dim not in larger:
                    order.insert(dim, dim)
            return natural if [dim for dim in order if dim in larger] == larger else order
    return natural if _never_swaps(sizes, operands) else None


def _never_swaps(sizes: tuple[Size, ...], operands: Sequence[Strides]) -> bool:
    """Check that in all operands each dimension provably lies outside of those after it."""
    nonempty = assume_at_least(sizes, 1)
    for strides in operands:
        for outer, one in enumerate(strides):
            for inner in range(outer + 1, len(sizes)):
                two = strides[inner]
                if one is None or two is None:
                    return False
                if one.value == 0 or two.value == 0:
                    continue
                if not at_least(one - two, 0, nonempty):
                    return False
                # Equal strides swap if the inner size is larger, and so at least 2.
                if at_least(sizes[outer] - sizes[inner], 0, nonempty):
                    continue
                if not at_least(one - two, 1, assume_at_least([sizes[inner]], 2, nonempty)):
                    return False
    return True


def _sorted(sizes: tuple[Size, ...], operands: Sequence[Strides], dims: list[int]) -> list[int] | None:
    """Sort dims like TensorIterator's insertion sort, outermost first; None if a comparison is unknown."""
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
    return order


def _should_swap(sizes: tuple[Size, ...], operands: Sequence[Strides], one: int, two: int) -> int | None:
    """Compare two dimensions: -1 if one lies inside of two, 1 if outside, 0 if neither, None if unknown."""
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
            # The stride of a dimension of size 1 does not matter, so both sizes are assumed to exceed 1.
            bounds = bounds or assume_at_least([sizes[one], sizes[two]], 2)
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
