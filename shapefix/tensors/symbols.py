"""Symbols: the unknown integers in sizes and strides."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

    from shapefix.tensors.polynomials import Size

_serials = itertools.count()
next_serial = _serials.__next__
"""Return the next moment in the order of creation of symbols."""

UNBOUNDED: Final = -(1 << 40)
"""Lower bound of a symbol without a known bound."""


class Symbol:
    """Unknown integer, never below `least`; a symbol equals only itself."""

    __slots__ = ("__weakref__", "least", "name", "serial")

    def __init__(self, name: str, least: int = 1) -> None:
        self.name = name
        self.least = least
        self.serial = next(_serials)

    def __repr__(self) -> str:
        return self.name


class Atom(Symbol):
    """Non-polynomial function of two sizes; equal arguments give the same atom.

    op is one of `//`, `%`, `min`, `max` and `/`, an exact quotient. Size.text writes it. weight is the number
    of atoms in its text: atoms with shared operands may have exponentially many.
    """

    __slots__ = ("left", "op", "right", "weight")

    weight: int

    def __init__(self, op: str, left: Size, right: Size, least: int) -> None:
        super().__init__(op, least)
        self.op = op
        self.left = left
        self.right = right
        self.weight = 1 + sum(
            symbol.weight
            for size in (left, right)
            for monomial in size.terms
            for symbol in monomial
            if isinstance(symbol, Atom)
        )


class OpaqueStride(Symbol):
    """Unknown stride of a tensor with non-overlapping dimensions.

    base is the same object for all strides of one tensor; size is the size of the dimension in that tensor.
    """

    __slots__ = ("base", "size")

    def __init__(self, name: str, base: object, size: Size) -> None:
        super().__init__(name, 1)
        self.base = base
        self.size = size


class UnknownSize(Symbol):
    """Size of a tensor, read by the code and not known from anywhere: perhaps 1."""

    __slots__ = ()


class SizeOf(UnknownSize):
    """Unknown size of a tensor without a name; code is the expression creating the tensor."""

    __slots__ = ("code",)

    def __init__(self, name: str, code: str) -> None:
        super().__init__(name, 1)
        self.code = code


class RowCount(Symbol):
    """Number of rows of data, known to the run only; most is an upper bound, None without one."""

    __slots__ = ("most",)

    def __init__(self, name: str, most: Size | None = None) -> None:
        super().__init__(name, 0)
        self.most = most


class PerItemSize(Symbol):
    """Number with a value per item: the length of a row, the longest length of a batch.

    axis identifies the items; None means the calls of the code that created the symbol, for any items. source
    is where the difference comes from.
    """

    __slots__ = ("axis", "source")

    def __init__(self, name: str, axis: object | None, source: object, least: int = 0) -> None:
        super().__init__(name, least)
        self.axis = axis
        self.source = source


class DrawnNumber(PerItemSize):
    """Random number from least to largest, another one for each call; each of them may be drawn."""

    __slots__ = ("largest",)

    def __init__(self, name: str, axis: object | None, source: object, least: int, largest: int) -> None:
        super().__init__(name, axis, source, least)
        self.largest = largest


class RangeItem(Symbol):
    """Arbitrary number of `range(start, stop, step)`."""

    __slots__ = ("start", "step", "stop")

    def __init__(self, name: str, start: Size, stop: Size, step: Size) -> None:
        super().__init__(name, 0)
        self.start = start
        self.stop = stop
        self.step = step


class SampleIndex(Symbol):
    """Index of an arbitrary sample of a data set: a loader gets to each of them."""

    __slots__ = ()


class ListedNumber(Symbol):
    """Arbitrary number of a list of known numbers, from smallest to largest."""

    __slots__ = ("largest", "numbers", "smallest")

    def __init__(self, numbers: Collection[int]) -> None:
        self.smallest, self.largest = min(numbers), max(numbers)
        super().__init__("n", min(self.smallest, 1))
        self.numbers = numbers


class DistinctCount(Symbol):
    """Number of different numbers in data, known to the run only, at most `most`; None without a bound."""

    __slots__ = ("most",)

    def __init__(self, name: str, most: int | None) -> None:
        super().__init__(name, 0)
        self.most = most


class LargestNumber(Symbol):
    """Largest number of data, known to the run only; most is an upper bound, None without one."""

    __slots__ = ("most",)

    def __init__(self, name: str, most: int | None) -> None:
        super().__init__(name, UNBOUNDED)
        self.most = most


class ItemPosition(Symbol):
    """Position of an arbitrary item of a list, counted from 0."""

    __slots__ = ()


class TokenId(Symbol):
    """Arbitrary token id of a text.

    sources are the calls that tokenized it, more than one if rows were joined. added holds the ids of special
    tokens that the code inserted, each with the place in the code.
    """

    __slots__ = ("added", "sources")

    def __init__(
        self, name: str, sources: frozenset[object], added: frozenset[tuple[SpecialId, object]] = frozenset()
    ) -> None:
        super().__init__(name, 0)
        self.sources = sources
        self.added = added


class SpecialId(Symbol):
    """Id of a special token of one tokenizer."""

    __slots__ = ()


class MaskedLabel(Symbol):
    """Arbitrary label from a list of -100 and token ids; source is the place of the list's creation."""

    __slots__ = ("source",)

    def __init__(self, name: str, source: object = None) -> None:
        super().__init__(name, UNBOUNDED)
        self.source = source


class BatchSize(Symbol):
    """Number of samples in a batch of a DataLoader: `full`, or fewer in the last batch.

    length is the total number of samples, None if unknown; loader is where the DataLoader is created.
    """

    __slots__ = ("full", "length", "loader")

    def __init__(self, name: str, full: Size, length: Size | None, loader: object) -> None:
        super().__init__(name, 1)
        self.full = full
        self.length = length
        self.loader = loader


class BatchCount(Symbol):
    """Number of batches of a DataLoader, `len(loader)`; loader is the place of its creation."""

    __slots__ = ("loader",)

    def __init__(self, name: str, loader: object) -> None:
        super().__init__(name, 0)
        self.loader = loader


class CommandLineOption(Symbol):
    """Number set on the command line, `default` if it is omitted.

    flag is the option as typed, such as `--hidden`; place is where the code declares it.
    """

    __slots__ = ("default", "flag", "place")

    def __init__(self, name: str, default: int, flag: str, place: object) -> None:
        super().__init__(name, 1)
        self.default = default
        self.flag = flag
        self.place = place
