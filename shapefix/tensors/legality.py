"""Legality of `.view`: merged dimensions must have compatible strides."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from shapefix.tensors.bounds import NO_BOUNDS, Bounds, assume_at_least, at_least, same
from shapefix.tensors.layout import Layout, contiguous, sizes_of
from shapefix.tensors.overlap import unknown_view
from shapefix.tensors.polynomials import ONE, Size, divide, product, suffix_products
from shapefix.tensors.quotients import quotient
from shapefix.tensors.symbols import Atom, OpaqueStride
from shapefix.tensors.verdicts import Illegal, Legal, Undecided, ViewVerdict, WrongNumel


def view(
    layout: Layout, target: Sequence[int | Size], minus_one: int | None = None, bounds: Bounds = NO_BOUNDS
) -> ViewVerdict:
    """Decide whether torch accepts `.view(target)`, and find the resulting layout.

    minus_one is the position of -1 in target, the size for torch to infer; the entry at this position is
    ignored.
    """
    sizes = sizes_of(target)
    numel = layout.numel
    fits: bool | None = True
    if minus_one is None:
        fits = same(numel, product(sizes), bounds)
        if fits is False:
            return WrongNumel(numel, product(sizes))
    else:
        others = product(size for place, size in enumerate(sizes) if place != minus_one)
        found = _inferred(numel, others)
        if found is None:
            return WrongNumel(numel, others)
        fits = True if divide(numel, others) is not None else None
        sizes = (*sizes[:minus_one], found, *sizes[minus_one + 1 :])
    if layout.is_constant and all(size.value is not None for size in sizes):
        return _exact(layout, sizes)
    return _symbolic(layout, sizes, fits, bounds)


def _inferred(numel: Size, others: Size) -> Size | None:
    """Size inferred for -1; None if the other sizes do not divide numel."""
    if others.value == 0:
        return None
    if numel.value is not None and others.value is not None:
        return Size.of(numel.value // others.value) if numel.value % others.value == 0 else None
    return quotient(numel, others)


def _exact(layout: Layout, sizes: tuple[Size, ...]) -> ViewVerdict:
    """Decide a view of constants with equal numbers of elements by the algorithm of torch's computeStride."""
    have = [size.value or 0 for size in layout.sizes]
    strides = [stride.value or 0 for stride in layout.strides]
    want = [size.value or 0 for size in sizes]
    if not have:
        return Legal(Layout(sizes, tuple(ONE for _ in sizes)))
    if min(have) < 0:
        # No tensor has such sizes: the code before it raises, or never runs.
        return Undecided(contiguous(sizes), numel=True)
    if 0 in have:
        # A view of an empty tensor to its own sizes keeps the strides; to other sizes it is contiguous.
        return Legal(Layout(sizes, layout.strides) if have == want else contiguous(sizes))
    blocks: list[tuple[int, int, int]] = []
    for dim, (size, stride) in enumerate(zip(have, strides, strict=True)):
        if size == 1:
            continue
        if blocks and blocks[-1][1] == size * stride:
            blocks[-1] = (blocks[-1][0] * size, stride, dim)
        else:
            blocks.append((size, stride, dim))
    if not blocks:
        blocks.append((1, strides[-1], len(have) - 1))
    found = [0] * len(want)
    place = len(want) - 1
    for count, stride, _ in reversed(blocks):
        filled = 1
        while place >= 0 and (filled < count or want[place] == 1):
            found[place] = filled * stride
            filled *= want[place]
            place -= 1
        if filled != count:
            return _exactly_illegal(have, strides, want, sizes)
    return Legal(Layout(sizes, sizes_of(found)))


def _exactly_illegal(
    have: list[int], strides: list[int], want: list[int], sizes: tuple[Size, ...]
) -> Illegal:
    """Outermost merge across a gap: a stride gap between two dimensions not separated by the target."""
    lefts = {1}
    left = 1
    for size in want:
        left *= size
        lefts.add(left)
    kept = [dim for dim, size in enumerate(have) if size != 1]
    left = 1
    for outer, inner in pairwise(kept):
        left *= have[outer]
        needs = have[inner] * strides[inner]
        if strides[outer] != needs and left not in lefts:
            return Illegal(outer, inner, Size.of(strides[outer]), Size.of(needs), (), contiguous(sizes))
    raise AssertionError("an illegal view merges dimensions across a stride gap")


def _symbolic(layout: Layout, sizes: tuple[Size, ...], fits: bool | None, bounds: Bounds) -> ViewVerdict:
    kept = [dim for dim, size in enumerate(layout.sizes) if size.value != 1]
    if not kept:
        last = layout.strides[-1] if layout.strides else ONE
        view = Layout(sizes, tuple(suffix_products(sizes, last)[1:]))
        return Legal(view) if fits else Undecided(view, numel=True)
    have = tuple(layout.sizes[dim] for dim in kept)
    strides = tuple(layout.strides[dim] for dim in kept)
    gaps = [
        at
        for at in range(len(kept) - 1)
        if same(strides[at], have[at + 1] * strides[at + 1], bounds) is not True
    ]
    if not gaps:
        view = Layout(sizes, tuple(suffix_products(sizes, strides[-1])[1:]))
        return Legal(view) if fits else Undecided(view, numel=True)
    splits = _Splits(have, sizes)
    cuts: list[tuple[int, int]] = []
    for at in gaps:
        place = splits.place(at, bounds)
        if place is None:
            break
        cuts.append((at, place))
    else:
        view = Layout(sizes, _split_strides(strides, sizes, cuts))
        return Legal(view) if fits else Undecided(view, numel=True)
    illegal = _illegal(have, strides, gaps, splits, bounds)
    if illegal is not None:
        at, conditions = illegal
        needs = have[at + 1] * strides[at + 1]
        return Illegal(kept[at], kept[at + 1], strides[at], needs, conditions, contiguous(sizes))
    return Undecided(unknown_view(sizes, layout), numel=not fits)


def _split_strides(
    strides: tuple[Size, ...], sizes: tuple[Size, ...], cuts: list[tuple[int, int]]
) -> tuple[Size, ...]:
    """Strides of a view split at each cut: after dimension `at`, before target position `place`."""
    found: list[Size] = []
    start = 0
    for at, place in [*cuts, (len(strides) - 1, len(sizes))]:
        found.extend(suffix_products(sizes[start:place], strides[at])[1:])
        start = max(start, place)
    return tuple(found)


class _Splits:
    """Products of the sizes on either side of every boundary, in a tensor and in a target."""

    def __init__(self, have: tuple[Size, ...], want: tuple[Size, ...]) -> None:
        self.lefts = _prefix_products(have)
        self.rights = suffix_products(have)
        self.target_lefts = _prefix_products(want)
        self.target_rights = suffix_products(want)

    def place(self, at: int, bounds: Bounds) -> int | None:
        """Outermost target position provably split after dimension `at`; None without one."""
        left, right = self.lefts[at + 1], self.rights[at + 1]
        for place, (one, two) in enumerate(zip(self.target_lefts, self.target_rights, strict=True)):
            if same(left, one, bounds) is True or same(right, two, bounds) is True:
                return place
        return None

    def never(self, at: int, bounds: Bounds) -> bool:
        """Check that provably no target position splits after dimension `at`."""
        left, right = self.lefts[at + 1], self.rights[at + 1]
        return all(
            same(left, one, bounds) is False or same(right, two, bounds) is False
            for one, two in zip(self.target_lefts, self.target_rights, strict=True)
        )


def _prefix_products(sizes: tuple[Size, ...]) -> list[Size]:
    products = [ONE]
    for size in sizes:
        products.append(products[-1] * size)
    return products


def _illegal(
    have: tuple[Size, ...], strides: tuple[Size, ...], gaps: list[int], splits: _Splits, bounds: Bounds
) -> tuple[int, tuple[Size, ...]] | None:
    """Find a boundary with a provable failure of the view, and the sizes required to exceed 1 for it."""
    nonempty = assume_at_least(have, 1, bounds)

    def fails(at: int, sizes: Sequence[Size]) -> bool:
        known = assume_at_least(sizes, 2, nonempty)
        return same(strides[at], have[at + 1] * strides[at + 1], known) is False and splits.never(at, known)

    def open_conditions(sizes: Sequence[Size]) -> tuple[Size, ...]:
        return tuple(dict.fromkeys(size for size in sizes if not at_least(size, 2, bounds)))

    for at in gaps:
        pair = have[at : at + 2]
        if fails(at, pair):
            return at, open_conditions(pair)
    for at in gaps:
        pair = have[at : at + 2]
        # Sizes removed by select or a slice still occur in the strides.
        conditions = list(open_conditions([*have, *_sizes_within(strides[at], strides[at + 1])]))
        if not fails(at, conditions):
            continue
        for size in [size for size in conditions if size not in pair]:
            fewer = [other for other in conditions if other is not size]
            if fails(at, fewer):
                conditions = fewer
        return at, tuple(conditions)
    return None


def _sizes_within(*strides: Size) -> list[Size]:
    """Sizes in the strides, in order of creation."""
    found = {symbol for stride in strides for symbol in stride.symbols}
    plain = [symbol for symbol in found if not isinstance(symbol, Atom | OpaqueStride)]
    return [Size.from_symbol(symbol) for symbol in sorted(plain, key=lambda symbol: symbol.serial)]
