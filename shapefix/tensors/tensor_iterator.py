"""TensorIterator: the layout that torch gives to the result of an elementwise operation.

If every operand is contiguous, or all share one dense layout, that layout is kept. Else the dimensions
are ordered by stride, the first operand that disagrees decides, a stride of 0 is no opinion, and the
result is allocated densely in that order.
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
"""Strides over the sizes of a result: 0 where an operand is stretched, None where that is not known."""


def broadcast_sizes(*shapes: tuple[Size, ...]) -> tuple[Size, ...]:
    """The sizes that the shapes broadcast to. Raises SizeMismatch for the last two that clash."""
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
    """Whether two sizes provably cannot be broadcast."""
    if one is two or one == two or one.value == 1 or two.value == 1:
        return False
    if one.value == 0 or two.value == 0:
        return at_least(two if one.value == 0 else one, 2) is True
    return at_least(one, 2) is True and at_least(two, 2) is True and same(one, two) is False


def _broadcast_size(one: Size, two: Size) -> Size:
    """What two sizes broadcast to that do not clash."""
    if one is two or one == two or two.value == 1:
        return one
    if one.value == 1:
        return two
    if one.value == 0 or two.value == 0:
        return ZERO
    if at_least(one, 2):
        return one
    # Equal, or one of them is 1.
    return two if at_least(two, 2) else maximum(one, two)


def _mismatch(shapes: Sequence[tuple[Size, ...]], one: int, two: int, place: int) -> SizeMismatch:
    """The error for two shapes that clash at a place, counted from the end."""
    have, want = shapes[one][place], shapes[two][place]
    dim, other_dim = len(shapes[one]) + place, len(shapes[two]) + place
    message = (
        f"The size of tensor a ({have}) must match the size of tensor b ({want}) "
        f"at non-singleton dimension {max(map(len, shapes)) + place}"
    )
    return SizeMismatch(message, have, want, dim, operand=one, other=two, other_dim=other_dim)


def mismatch_unless_one(*shapes: tuple[Size, ...]) -> SizeMismatch | None:
    """The first two sizes that differ, and of which one may be 1: they clash where neither of them is.

    None where there are none; the conditions of the error are the sizes that must exceed 1.
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
    """Raises ShapeError where what is written provably cannot be stretched to the sizes of its target.

    operand is the number of what is written, other that of the target, None where that is no operand.
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
    """The strides of an operand over the sizes that it is broadcast to."""
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
    return allocated(sizes, [aligned(operand, sizes) for operand in operands])


def allocated(sizes: tuple[Size, ...], operands: Sequence[Strides]) -> Layout:
    """The layout of a result of these sizes, ordered by the strides that the operands have over them."""
    order = dense_order(sizes, operands)
    return unknown_strides(sizes) if order is None else permuted_dense(sizes, order)


def is_dense(layout: Layout) -> bool:
    """Whether the tensor provably fills its memory without gaps or overlap, in any order of dimensions."""
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
    """The order, outermost first, in which TensorIterator puts the dimensions; None where unknown."""
    natural = list(range(len(sizes)))
    if len(sizes) < 2:
        return natural
    exact = all(size.value is not None for size in sizes) and all(
        stride is not None and stride.value is not None for strides in operands for stride in strides
    )
    if exact or all(at_least(size, 2) for size in sizes):
        return _sorted(sizes, operands, natural)
    # A dimension of size 1 may bring others into another order, unless one operand decides everything.
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
    """Whether all operands provably agree that each dimension lies outside of those after it."""
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
                # Equal strides swap where the inner size is the larger, so at least 2.
                if at_least(sizes[outer] - sizes[inner], 0, nonempty):
                    continue
                if not at_least(one - two, 1, assume_at_least([sizes[inner]], 2, nonempty)):
                    return False
    return True


def _sorted(sizes: tuple[Size, ...], operands: Sequence[Strides], dims: list[int]) -> list[int] | None:
    """These dimensions as TensorIterator's insertion sort leaves them, outermost first."""
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
