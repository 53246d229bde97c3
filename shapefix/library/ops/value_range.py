"""Smallest and largest elements of a tensor, if the code states them."""

from __future__ import annotations

import operator as operators
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, elements
from shapefix.interpreter.tensor_values import TensorValue, ValueRange
from shapefix.interpreter.values import Constant, Integer, Unknown, Value, WholeNumber, as_size, integer
from shapefix.tensors.bounds import at_least, same
from shapefix.tensors.dtypes import is_floating
from shapefix.tensors.options import by_default
from shapefix.tensors.polynomials import ZERO, Size
from shapefix.tensors.quotients import shifted_dividend, substitute
from shapefix.tensors.symbols import (
    UNBOUNDED,
    Atom,
    DistinctCount,
    DrawnNumber,
    LargestNumber,
    ListedNumber,
    RangeItem,
    Symbol,
)

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
        "float",
        "double",
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
    kinds = (ListedNumber, DrawnNumber, RangeItem, Atom)
    symbols = [symbol for symbol in number.symbols if isinstance(symbol, kinds)]
    if len(symbols) != 1:
        return ValueRange(number, number)
    (listed,) = symbols
    bounds = _bounds(listed)
    if bounds is None:
        return ValueRange(number, number)
    if number.terms.keys() - {(), (listed,)}:
        return ValueRange(number, number)
    least, most = sorted(number.terms[(listed,)] * end + number.terms.get((), 0) for end in bounds)
    return ValueRange(Size.of(least), Size.of(most), drawn=True)


def _bounds(listed: ListedNumber | DrawnNumber | RangeItem | Atom) -> tuple[int, int] | None:
    """Smallest and largest number of a symbol; None if they are not known."""
    if isinstance(listed, ListedNumber):
        return listed.smallest, listed.largest
    if isinstance(listed, DrawnNumber):
        return listed.least, listed.largest
    if isinstance(listed, Atom):
        return _bounds_of_quotient(listed)
    numbers = _counted(listed)
    return None if numbers is None else (min(numbers[0], numbers[-1]), max(numbers[0], numbers[-1]))


def _counted(item: RangeItem) -> range | None:
    """All numbers of a range; None if they are not known."""
    start, stop, step = item.start.value, item.stop.value, item.step.value
    if start is None or stop is None or not step:
        return None
    return range(start, stop, step) or None


def _bounds_of_quotient(atom: Atom) -> tuple[int, int] | None:
    """Smallest and largest number of `i % 5` or `i // 5`; of a remainder by default all below the divisor."""
    parts = shifted_dividend(atom)
    if parts is None:
        return None
    symbol, shift, divisor = parts
    numbers: Collection[int] | None = None
    if isinstance(symbol, RangeItem):
        numbers = _counted(symbol)
    elif isinstance(symbol, DrawnNumber):
        numbers = range(symbol.least, symbol.largest + 1)
    elif isinstance(symbol, ListedNumber):
        numbers = symbol.numbers
    if numbers is not None and len(numbers) <= _MOST:
        shifted = [number + shift for number in numbers]
        found = [each % divisor if atom.op == "%" else each // divisor for each in shifted]
        return min(found), max(found)
    return (0, divisor - 1) if atom.op == "%" and not isinstance(symbol, ListedNumber) else None


def outside_of(ids: TensorValue, classes: Size, ignored: int | None = None) -> Size | None:
    """Id outside of the classes in a tensor of ids; None without one, or with an unknown range.

    classes is the number of classes, or of rows of an embedding; ignored is the id left out by a loss.
    """
    known = range_of(ids)
    if known is None:
        return None
    least, most = known.least, known.most
    # An id of at least a number of classes is not negative.
    is_counted = ignored is None or ignored < 0 or same(most, ignored) is False
    if is_counted and (at_least(most - classes, 0) or _is_above(most, classes)):
        return most
    is_negative = at_least(least, 0) is False
    return least if is_negative and (ignored is None or same(least, ignored) is False) else None


def _is_above(most: Size, classes: Size) -> bool:
    """Check for a number not below a count at its upper bound, with the defaults of options."""
    if most.value is None:
        return False
    bounds: dict[Symbol, int | Size] = {
        s: s.most for s in classes.symbols if isinstance(s, DistinctCount) and s.most is not None
    }
    if any(coefficient < 0 for monomial, coefficient in classes.terms.items() if monomial):
        return False
    largest = by_default(substitute(classes, bounds)).value
    return largest is not None and most.value >= largest


def different(code: str, source: TensorValue | None) -> Size:
    """Number of different numbers in a tensor or array, as the code writes it."""
    known = range_of(source)
    least, most = (None, None) if known is None else (known.least.value, known.most.value)
    count = None if least is None or most is None else most - least + 1
    if known is not None and known.values is not None:
        count = len(known.values)
    return Size.from_symbol(DistinctCount(code, count))


def largest(call: Call, source: TensorValue) -> ValueRange | None:
    """Range of the largest number of a tensor; an unknown one becomes that of the tensor, too."""
    known = range_of(source)
    if source.dtype not in _LIMITS or is_floating(source.dtype) or source.storage.is_written:
        return None
    if known is not None and not known.drawn:
        return ValueRange(known.most, known.most)
    most = Size.from_symbol(LargestNumber(call.place.code, None if known is None else known.most.value))
    least = Size.symbol("smallest", least=UNBOUNDED) if known is None else known.least
    call.ev.journal.write(source, "extremes", ValueRange(least, most))
    return ValueRange(most, most)


def only_number(tensor: TensorValue) -> Value | None:
    """Single number repeated in a tensor; None if it is not known."""
    known = range_of(tensor)
    return integer(known.most) if known is not None and known.least == known.most else None


def part_of(known: ValueRange | None) -> ValueRange | None:
    """Range of arbitrary elements of a tensor with a known range."""
    return None if known is None else replace(known, drawn=True)


def of_all(parts: Sequence[TensorValue], *, complete: bool) -> ValueRange | None:
    """Range of the elements of all these tensors; if they are not all, any of their elements may be there."""
    known = [range_of(part) for part in parts]
    if len(known) == 1:
        return known[0] if complete else part_of(known[0])
    found = [each for each in known if each is not None and each.least.value is not None]
    if not found or len(found) < len(parts) or any(each.most.value is None for each in found):
        return None
    least, most = min(each.least.value or 0 for each in found), max(each.most.value or 0 for each in found)
    is_drawn = not complete or any(each.drawn for each in found)
    return ValueRange(Size.of(least), Size.of(most), is_drawn, _values(found))


def any_of(one: TensorValue | ValueRange | None, other: TensorValue | ValueRange | None) -> ValueRange | None:
    """Range of one of two tensors: that of both together."""
    left, right = (range_of(each) if isinstance(each, TensorValue) else each for each in (one, other))
    if left is None or right is None or left == right:
        return left if left == right else None
    ends = _ends(left, right)
    values = None if left.values is None or right.values is None else left.values | right.values
    return None if ends is None else ValueRange(Size.of(min(ends)), Size.of(max(ends)), True, values)


def chosen(source: TensorValue, made: TensorValue) -> TensorValue:
    """Record the range of arbitrary elements of another tensor, and return their tensor."""
    if (known := range_of(source)) is not None:
        made.extremes = part_of(known)
    return made


def selected(source: TensorValue, made: TensorValue, index: Value) -> TensorValue:
    """Record the range of elements of random numbers at these indices, and return their tensor.

    A mask may leave out just the elements at the ends, and so may a slice of numbers that are not random.
    """
    entries = elements(index) or (index,)
    is_mask = any(isinstance(e, TensorValue) and e.dtype in (None, "bool", "uint8") for e in entries)
    is_unknown = any(isinstance(e, (Unknown, ListValue)) for e in entries)
    is_random = source.extremes is not None and (source.extremes.drawn or _reaches_all(source, entries))
    if is_random and not is_mask and not is_unknown:
        return chosen(source, made)
    return made


def _reaches_all(source: TensorValue, entries: Sequence[Value]) -> bool:
    """Whether random indices may select each element of a tensor of one dimension."""
    ids = entries[0] if len(entries) == 1 else None
    if not isinstance(ids, TensorValue) or source.layout is None or source.layout.rank != 1:
        return False
    known = range_of(ids)
    is_from_first = known is not None and known.drawn and same(known.least, 0) is True
    return is_from_first and known is not None and same(known.most, source.layout.sizes[0] - 1) is True


def listed(made: TensorValue, data: Value | None) -> TensorValue:
    """Tensor of the numbers in a list, in lists of lists, or of a single number."""
    number = data.element if isinstance(data, ListValue) and data.items is None else data
    if isinstance(number, (Integer, WholeNumber)):
        return full_of(made, integer(number.size))
    ranges = list(_ranges(data))
    known = [each for each in ranges if each is not None]
    if ranges and len(known) == len(ranges):
        least, most = (
            min(each.least.value or 0 for each in known),
            max(each.most.value or 0 for each in known),
        )
        is_drawn = any(each.drawn for each in known)
        made.extremes = ValueRange(Size.of(least), Size.of(most), is_drawn, _values(known))
    return made


def _values(known: Sequence[ValueRange]) -> frozenset[int] | None:
    """All numbers in several ranges; None unless they are known one by one."""
    found = set[int]()
    for each in known:
        if each.values is None and each.least != each.most:
            return None
        found |= each.values or {each.least.value or 0}
    return frozenset(found)


def _whole(data: Value | None) -> int | None:
    """Whole number, `1` or `1.0`; None for anything else."""
    value = data.value if isinstance(data, Constant) else None
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _ranges(data: Value | None, depth: int = 0) -> Iterator[ValueRange | None]:
    """Ranges of the whole numbers in nested lists; a None for anything else."""
    items = elements(data)
    if items is None or depth > 4 or len(items) > _MOST:
        number = _whole(data)
        if number is not None:
            yield ValueRange(Size.of(number), Size.of(number))
            return
        found = _range_of(data.size) if isinstance(data, Integer) else None
        is_known = found is not None and found.least.value is not None and found.most.value is not None
        yield found if is_known else None
        return
    for item in items:
        yield from _ranges(item, depth + 1)


def kept(name: str, source: TensorValue, made: TensorValue) -> None:
    """Record that the result of an operation with this name has its source's elements."""
    if name in KEPT and (known := range_of(source)) is not None:
        made.extremes = known


TRUTH = ValueRange(ZERO, Size.of(1), drawn=True)
"""Range of the result of a comparison, as numbers."""
_LIMITS = {
    "bool": (0, 1),
    "uint8": (0, 255),
    "int8": (-128, 127),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "float16": (-(2**11), 2**11),
    "float32": (-(2**24), 2**24),
    "float64": (-(2**53), 2**53),
}
"""Whole numbers that each dtype holds exactly."""


def range_of(value: Value | None) -> ValueRange | None:
    """Range of a tensor, or of a single number; None if it is not known."""
    if isinstance(value, TensorValue):
        return None if value.storage.is_written else value.extremes
    number = _stated(value)
    known = None if number is None else _range_of(number)
    return None if known is None or known.least.value is None or known.most.value is None else known


def combined(name: str, one: Value | None, other: Value | None, dtype: str | None) -> ValueRange | None:
    """Range of a sum, difference, product or quotient of a tensor and a number, in any order.

    None if it is not known, or if its numbers do not fit into the dtype of the result.
    """
    left, right = range_of(one), range_of(other)
    if left is None or right is None or isinstance(one, TensorValue) == isinstance(other, TensorValue):
        return None
    ends = _ends(left, right)
    if ends is None or dtype not in _LIMITS:
        return None
    low, high, first, last = ends
    if name == "floordiv" and first == last and first > 0:
        found = [low // first, high // first]
    elif name in ("add", "sub", "mul"):
        operate = {"add": operators.add, "sub": operators.sub, "mul": operators.mul}[name]
        found = sorted(operate(a, b) for a in (low, high) for b in (first, last))
    else:
        return None
    return fitting(ValueRange(Size.of(found[0]), Size.of(found[-1]), left.drawn or right.drawn), dtype)


def either(one: Value | None, other: Value | None) -> ValueRange | None:
    """Range of a choice between two numbers for each element.

    Of a tensor, the condition may leave out just the elements at the ends.
    """
    left, right = range_of(one), range_of(other)
    if left is None or right is None or isinstance(one, TensorValue) or isinstance(other, TensorValue):
        return None
    ends = _ends(left, right)
    return None if ends is None else ValueRange(Size.of(min(ends)), Size.of(max(ends)), drawn=True)


def _ends(one: ValueRange, other: ValueRange) -> tuple[int, int, int, int] | None:
    """The smallest and the largest number of two ranges; None unless all are known."""
    low, high, first, last = one.least.value, one.most.value, other.least.value, other.most.value
    if low is None or high is None or first is None or last is None:
        return None
    return low, high, first, last


def fitting(known: ValueRange | None, dtype: str | None) -> ValueRange | None:
    """Range of whole numbers in a dtype; None for other dtypes, or if they do not fit into it."""
    if known is None or dtype not in _LIMITS:
        return None
    least, most = _LIMITS[dtype]
    if isinstance(known.most.only_symbol, LargestNumber):
        # A number of classes is far below the limits.
        return known if dtype in ("int32", "int64") else None
    is_inside = at_least(known.least, least) and at_least(Size.of(most) - known.most, 0)
    return known if is_inside else None
