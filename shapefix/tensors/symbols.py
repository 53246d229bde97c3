"""Symbols: the unknown whole numbers that sizes and strides are made of."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from shapefix.tensors.polynomials import Size

_serials = itertools.count()

UNBOUNDED: Final = -(1 << 40)
"""The lower bound of a symbol about which nothing is known."""


class Symbol:
    """One unknown whole number, equal only to itself; it is never below `least`."""

    __slots__ = ("__weakref__", "least", "name", "serial")

    def __init__(self, name: str, least: int = 1) -> None:
        self.name = name
        self.least = least
        self.serial = next(_serials)

    def __repr__(self) -> str:
        return self.name


class Atom(Symbol):
    """A function of two sizes that does not fold into a polynomial; equal arguments give the same atom.

    op is one of `//`, `%`, `min`, `max`, and `/`, a quotient known to be exact.
    Its text comes from Size.text.
    """

    __slots__ = ("left", "op", "right")

    def __init__(self, op: str, left: Size, right: Size, least: int) -> None:
        super().__init__(op, least)
        self.op = op
        self.left = left
        self.right = right


class OpaqueStride(Symbol):
    """An unknown stride of a tensor whose dimensions do not overlap.

    base is one object for all the strides of a tensor, size the size of the dimension in that tensor.
    """

    __slots__ = ("base", "size")

    def __init__(self, name: str, base: object, size: Size) -> None:
        super().__init__(name, 1)
        self.base = base
        self.size = size


class PerItemSize(Symbol):
    """A number that differs from item to item: the length of a row, the longest length of a batch.

    axis is what the items range over; None stands for the calls of the code that made it, whatever they
    turn out to range over. source tells where the difference comes from.
    """

    __slots__ = ("axis", "source")

    def __init__(self, name: str, axis: object | None, source: object, least: int = 0) -> None:
        super().__init__(name, least)
        self.axis = axis
        self.source = source


class RangeItem(Symbol):
    """Any one number of `range(start, stop, step)`."""

    __slots__ = ("start", "step", "stop")

    def __init__(self, name: str, start: Size, stop: Size, step: Size) -> None:
        super().__init__(name, 0)
        self.start = start
        self.stop = stop
        self.step = step


class ItemPosition(Symbol):
    """The position of any one item of a list, counted from its first one."""

    __slots__ = ()


class TokenId(Symbol):
    """Any one id of a text; sources are the calls that tokenized it, several where rows were put together.

    added are the ids of special tokens that the code put among them, and the places where it did.
    """

    __slots__ = ("added", "sources")

    def __init__(
        self, name: str, sources: frozenset[object], added: frozenset[tuple[SpecialId, object]] = frozenset()
    ) -> None:
        super().__init__(name, 0)
        self.sources = sources
        self.added = added


class SpecialId(Symbol):
    """The id of a special token of one tokenizer."""

    __slots__ = ()


class MaskedLabel(Symbol):
    """Any one of labels some of which are -100, the others ids; source is where they were put together."""

    __slots__ = ("source",)

    def __init__(self, name: str, source: object = None) -> None:
        super().__init__(name, UNBOUNDED)
        self.source = source


class BatchSize(Symbol):
    """How many samples a loader puts into a batch: `full`, and fewer into its last one.

    length is the number of samples in all, None where that is not known; loader tells where it is made.
    """

    __slots__ = ("full", "length", "loader")

    def __init__(self, name: str, full: Size, length: Size | None, loader: object) -> None:
        super().__init__(name, 1)
        self.full = full
        self.length = length
        self.loader = loader


class CommandLineOption(Symbol):
    """A number that whoever starts the program may choose, `default` where nobody does.

    flag is what it is called on the command line, `--hidden`; place is where the code declares it.
    """

    __slots__ = ("default", "flag", "place")

    def __init__(self, name: str, default: int, flag: str, place: object) -> None:
        super().__init__(name, 1)
        self.default = default
        self.flag = flag
        self.place = place
