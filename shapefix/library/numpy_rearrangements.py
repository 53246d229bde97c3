"""Functions of numpy to order, cut, pad, extend and window arrays, and norms."""

from __future__ import annotations

from collections.abc import Sequence

from shapefix.interpreter.calls import Arguments, Call, call_library
from shapefix.interpreter.containers import ListValue, TupleValue, elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Unknown, Value, as_size
from shapefix.library.numpy_arrays import ARRAY, array_like, as_array, new_array, with_range
from shapefix.library.numpy_operations import promoted
from shapefix.library.numpy_signatures import arguments_of_numpy
from shapefix.library.ops.value_range import part_of, range_of
from shapefix.library.registry import function, method
from shapefix.library.signatures import BoundArguments
from shapefix.tensors.bounds import at_least
from shapefix.tensors.dtypes import is_floating
from shapefix.tensors.layout import Layout, contiguous, is_contiguous, unknown_strides
from shapefix.tensors.polynomials import Size, product

_MOST_PARTS = 64
"""Maximum number of parts of an array kept one by one."""


def _subject(call: Call) -> tuple[TensorValue | None, BoundArguments]:
    """Array of a function or method, and the arguments by name."""
    given = arguments_of_numpy(call)
    source = call.receiver if call.receiver is not None else next(iter(given.values.values()), None)
    return (None if call.arguments.open else as_array(source)), given


def _axis(given: BoundArguments, held: TensorValue, name: str = "axis") -> int | None:
    """Axis counted from the first; None if it is unknown or does not exist."""
    axis = given.number(name)
    rank = held.layout.rank if held.layout is not None else 0
    return axis % rank if axis is not None and -rank <= axis < rank else None


def _ordered_as(held: TensorValue, sizes: Sequence[Size]) -> Layout:
    """Layout of a new array of these sizes, made of another one."""
    is_plain = held.layout is not None and is_contiguous(held.layout)
    return contiguous(sizes) if is_plain else unknown_strides(tuple(sizes))


@method(ARRAY, "argsort")
@function("numpy.argsort", "numpy.sort")
def ordered(call: Call) -> Value:
    """Elements in order along an axis, or their positions."""
    held, given = _subject(call)
    if held is None or _axis(given, held) is None:
        return Unknown()
    if call.name.endswith("argsort"):
        return array_like(call, held, "int64")
    return with_range(array_like(call, held, held.dtype), range_of(held))


@method(ARRAY, "cumsum", "cumprod")
@function("numpy.cumsum", "numpy.cumprod")
def accumulated(call: Call) -> Value:
    """Sums or products up to each element; without an axis, of all elements in one row."""
    held, given = _subject(call)
    if held is None or held.layout is None or not (given.is_none("dtype") and given.is_none("out")):
        return Unknown()
    dtype = held.dtype
    if dtype is not None and not is_floating(dtype):
        dtype = None if dtype == "uint8" else "int64"
    if given.is_none("axis"):
        return new_array(call, contiguous([product(held.layout.sizes)]), dtype, held)
    return Unknown() if _axis(given, held) is None else array_like(call, held, dtype)


@function("numpy.diff")
def differences(call: Call) -> Value:
    held, given = _subject(call)
    axis = None if held is None else _axis(given, held)
    plain = given.number("n") == 1 and not {"prepend", "append"} & call.arguments.keywords.keys()
    if held is None or held.layout is None or axis is None or not plain:
        return Unknown()
    sizes = list(held.layout.sizes)
    sizes[axis] = sizes[axis] - 1
    return new_array(call, _ordered_as(held, sizes), held.dtype, held)


@function("numpy.pad")
def padded(call: Call) -> Value:
    """Array with more elements before and after those of each axis."""
    held, given = _subject(call)
    if held is None:
        return Unknown()
    if held.layout is None:
        return new_array(call, None, held.dtype, held)
    widths = _widths(given.value("pad_width"), held.layout.rank)
    if widths is None:
        return new_array(call, None, held.dtype, held)
    sizes = [size + width for size, width in zip(held.layout.sizes, widths, strict=True)]
    return new_array(call, contiguous(sizes), held.dtype, held)


def _widths(value: Value | None, rank: int) -> list[Size] | None:
    """Number of elements added along each axis; None if unknown."""
    one = as_size(value)
    if one is not None:
        return [one * 2] * rank
    parts = elements(value)
    if parts is None:
        return None
    numbers = [as_size(part) for part in parts]
    known = [number for number in numbers if number is not None]
    if len(known) == len(numbers) == 2 and rank == 1:
        return [known[0] + known[1]]
    pairs = [[as_size(each) for each in elements(part) or ()] for part in parts]
    if len(pairs) != rank or any(len(pair) != 2 or None in pair for pair in pairs):
        return None
    return [sum((each for each in pair if each is not None), Size.of(0)) for pair in pairs]


@function("numpy.append")
def extended(call: Call) -> Value:
    """Two arrays in one; without an axis, both in one row."""
    given = arguments_of_numpy(call)
    held, other = as_array(given.value("arr")), as_array(given.value("values"))
    if held is None or other is None or call.arguments.open:
        return Unknown()
    if not given.is_none("axis"):
        keywords = {"axis": given.values["axis"]}
        parts = TupleValue((given.values["arr"], given.values["values"]))
        return call_library(call.ev, "numpy.concatenate", Arguments([parts], keywords), call.place.node)
    dtype = promoted(held.dtype, other.dtype)
    if held.layout is None or other.layout is None:
        return new_array(call, None, dtype, held)
    count = product(held.layout.sizes) + product(other.layout.sizes)
    return new_array(call, contiguous([count]), dtype, held)


@function("numpy.delete")
def deleted(call: Call) -> Value:
    """Array without one of its rows or columns."""
    held, given = _subject(call)
    if held is None:
        return Unknown()
    axis = _axis(given, held)
    if held.layout is None or axis is None or given.number("obj") is None:
        return new_array(call, None, held.dtype, held)
    sizes = list(held.layout.sizes)
    if not at_least(sizes[axis], 1):
        return new_array(call, None, held.dtype, held)
    sizes[axis] = sizes[axis] - 1
    return with_range(new_array(call, _ordered_as(held, sizes), held.dtype, held), part_of(range_of(held)))


@function("numpy.rollaxis")
def rolled(call: Call) -> Value:
    """Array with an axis moved before another one."""
    held, given = _subject(call)
    axis, start = (None, None) if held is None else (_axis(given, held), given.number("start"))
    if held is None or held.layout is None or axis is None or start is None:
        return Unknown()
    rank = held.layout.rank
    start = start + rank if start < 0 else start
    if not 0 <= start <= rank:
        return Unknown()
    axes = [each for each in range(rank) if each != axis]
    axes.insert(start - 1 if axis < start else start, axis)
    sizes, strides = held.layout.sizes, held.layout.strides
    moved = Layout(tuple(sizes[each] for each in axes), tuple(strides[each] for each in axes))
    return new_array(call, moved, held.dtype, held)


@function("numpy.split", "numpy.array_split")
def parts(call: Call) -> Value:
    """List of the parts of an array: so many, or between these positions."""
    held, given = _subject(call)
    wanted = given.value("indices_or_sections")
    axis = None if held is None else _axis(given, held)
    if held is None or held.layout is None or axis is None:
        return Unknown()
    sizes = _part_sizes(held.layout.sizes[axis], wanted, is_even=call.name.endswith(".split"))
    if sizes is None:
        rest = list(held.layout.sizes)
        rest[axis] = Size.symbol("part", least=0)
        return ListValue(None, new_array(call, unknown_strides(tuple(rest)), held.dtype, held))
    made = []
    for size in sizes:
        part = (*held.layout.sizes[:axis], size, *held.layout.sizes[axis + 1 :])
        made.append(new_array(call, Layout(part, held.layout.strides), held.dtype, held))
    return ListValue(tuple(made))


def _part_sizes(size: Size, wanted: Value | None, *, is_even: bool) -> list[Size] | None:
    """Sizes of the parts along the axis; None if they are unknown."""
    whole, number = size.value, wanted.value if isinstance(wanted, Constant) else None
    if whole is None:
        return None
    if type(number) is int:
        if not 0 < number <= _MOST_PARTS or (is_even and whole % number):
            return None
        least, longer = divmod(whole, number)
        return [Size.of(least + (place < longer)) for place in range(number)]
    ends = [each.value for each in elements(wanted) or () if isinstance(each, Constant)]
    places = [end for end in ends if type(end) is int and 0 <= end <= whole]
    known = len(places) == len(ends) == len(elements(wanted) or ()) <= _MOST_PARTS
    if not places or not known or places != sorted(places):
        return None
    return [Size.of(b - a) for a, b in zip([0, *places], [*places, whole], strict=True)]


@function("numpy.lib.stride_tricks.sliding_window_view")
def windows(call: Call) -> Value:
    """Windows of one axis, as a new last dimension."""
    held, given = _subject(call)
    width = given.size("window_shape")
    if held is None or held.layout is None or width is None:
        return Unknown()
    plain = {"x", "window_shape", "axis"} >= call.arguments.keywords.keys()
    axis = 0 if given.is_none("axis") and held.layout.rank == 1 else _axis(given, held)
    if not plain or len(call.arguments.positional) > 3 or axis is None:
        return Unknown()
    sizes = list(held.layout.sizes)
    sizes[axis] = sizes[axis] - width + 1
    return new_array(call, unknown_strides((*sizes, width)), held.dtype, held)


@function("numpy.outer")
def outer(call: Call) -> Value:
    """Product of each element of one array with each of another."""
    given = arguments_of_numpy(call)
    held, other = as_array(given.value("a")), as_array(given.value("b"))
    if held is None or other is None or call.arguments.open or not given.is_none("out"):
        return Unknown()
    dtype = promoted(held.dtype, other.dtype)
    if held.layout is None or other.layout is None:
        return new_array(call, None, dtype, held)
    sizes = [product(held.layout.sizes), product(other.layout.sizes)]
    return new_array(call, contiguous(sizes), dtype, held)


@function("numpy.linalg.norm")
def norm(call: Call) -> Value:
    """Lengths of the vectors along an axis, or of all elements."""
    held, given = _subject(call)
    keeps = given.flag("keepdims")
    if held is None or keeps is None or held.dtype is None:
        return Unknown()
    dtype = held.dtype if held.dtype in ("float32", "float64") else "float64"
    if held.dtype == "float16" or not (given.is_none("ord") or given.number("ord") in (1, 2)):
        return Unknown()
    if given.is_none("axis"):
        return Unknown() if keeps else new_array(call, contiguous([]), dtype, held)
    axis = _axis(given, held)
    if held.layout is None or axis is None:
        return Unknown()
    middle: Sequence[Size] = [Size.of(1)] if keeps else []
    sizes = (*held.layout.sizes[:axis], *middle, *held.layout.sizes[axis + 1 :])
    return new_array(call, _ordered_as(held, sizes), dtype, held)
