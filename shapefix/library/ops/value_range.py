"""Smallest and largest elements of a tensor, if the code states them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from shapefix.interpreter.containers import elements
from shapefix.interpreter.tensor_values import TensorValue, ValueRange
from shapefix.interpreter.values import Constant, Integer, Value, as_size
from shapefix.tensors.bounds import at_least, same
from shapefix.tensors.polynomials import ZERO, Size
from shapefix.tensors.quotients import substitute
from shapefix.tensors.symbols import DrawnNumber, ListedNumber

KEPT = frozenset(
    {
        "unsqueeze",
        "squeeze",
        "expand",
        "expand_as",
        "broadcast_to",
        "view",
        "view_as",
        "reshape",
        "reshape_as",
        "flatten",
        "unflatten",
        "to",
        "long",
        "int",
        "cuda",
        "cpu",
        "clone",
        "contiguous",
        "detach",
        "transpose",
        "permute",
        "t",
        "repeat",
        "tile",
        "type_as",
    }
)
"""Operations that keep the elements of a tensor, each of them at least once."""
_MOST = 512
"""Maximum number of numbers read from a list."""


def counted(made: TensorValue, first: Size, behind: Size) -> TensorValue:
    """Tensor of all numbers from first up to, but without, the end."""
    made.extremes = ValueRange(first, behind - 1)
    return made


def drawn(made: TensorValue, low: Value | None, high: Value) -> TensorValue:
    """Tensor of random numbers, `torch.randint(low, high, size)`: any of them may be drawn."""
    least = ZERO if low is None else _stated(low)
    behind = _stated(high)
    if least is not None and behind is not None:
        made.extremes = ValueRange(least, behind - 1, drawn=True)
    return made


def _stated(value: Value | None) -> Size | None:
    return as_size(value) if isinstance(value, (Constant, Integer)) else None


def full_of(made: TensorValue, value: Value | None) -> TensorValue:
    """Tensor of one number."""
    number = _stated(value)
    if number is not None:
        made.extremes = _range_of(number)
    return made


def _range_of(number: Size) -> ValueRange:
    """Range of tensors of this number; with an arbitrary number from a list, that of the whole list."""
    symbols = [symbol for symbol in number.symbols if isinstance(symbol, (ListedNumber, DrawnNumber))]
    if len(symbols) != 1:
        return ValueRange(number, number)
    (listed,) = symbols
    smallest = listed.smallest if isinstance(listed, ListedNumber) else listed.least
    ends = [substitute(number, {listed: end}) for end in (smallest, listed.largest)]
    if ends[0].value is None or ends[1].value is None or number.terms.keys() - {(), (listed,)}:
        return ValueRange(number, number)
    least, most = sorted(ends, key=lambda end: end.value or 0)
    return ValueRange(least, most, drawn=True)


def outside_of(ids: TensorValue, classes: Size, ignored: int | None = None) -> Size | None:
    """Id outside of the classes in a tensor of ids; None without one, or with an unknown range.

    classes is the number of classes, or of rows of an embedding; ignored is the id left out by a loss.
    """
    if ids.extremes is None or ids.storage.overwritten:
        return None
    least, most = ids.extremes.least, ids.extremes.most
    for end, is_outside in ((most, at_least(most - classes, 0)), (least, at_least(least, 0) is False)):
        if is_outside and (ignored is None or same(end, ignored) is False):
            return end
    return None


def chosen(source: TensorValue, made: TensorValue) -> TensorValue:
    """Record the range of arbitrary elements of another tensor, and return their tensor."""
    known = source.extremes
    if known is not None and not source.storage.overwritten:
        made.extremes = replace(known, drawn=True)
    return made


def listed(made: TensorValue, data: Value | None) -> TensorValue:
    """Tensor of the numbers in a list, in lists of lists, or of a single number."""
    if isinstance(data, Integer):
        return full_of(made, data)
    numbers = list(_numbers(data))
    if numbers and None not in numbers:
        known = [number for number in numbers if number is not None]
        made.extremes = ValueRange(Size.of(min(known)), Size.of(max(known)))
    return made


def _numbers(data: Value | None, depth: int = 0) -> Iterator[int | None]:
    """Integers in nested lists; a None for anything else."""
    items = elements(data)
    if items is None or depth > 4 or len(items) > _MOST:
        is_number = isinstance(data, Constant) and type(data.value) is int
        yield data.value if isinstance(data, Constant) and is_number else None
        return
    for item in items:
        yield from _numbers(item, depth + 1)


def kept(name: str, source: TensorValue, made: TensorValue) -> None:
    """Record that the result of an operation with this name has its source's elements."""
    if source.extremes is not None and name in KEPT and not source.storage.overwritten:
        made.extremes = source.extremes
