"""Arrays of numpy, as far as they become tensors: their sizes and dtype (float64 for floats).

Arrays are not tensors: methods of the same name behave differently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shapefix.domains.devices import ASKED_CPU
from shapefix.domains.raggedness import varying
from shapefix.interpreter.calls import Arguments, Call, call_library
from shapefix.interpreter.containers import NO_AXES, ListValue, TupleValue, elements
from shapefix.interpreter.per_item_sizes import renew
from shapefix.interpreter.tensor_values import TensorValue, ValueRange
from shapefix.interpreter.values import (
    NONE,
    WHOLE,
    Constant,
    Integer,
    LibraryObject,
    Reference,
    Slice,
    Unknown,
    Value,
    as_size,
    integer,
)
from shapefix.library.data.rows import note_rows
from shapefix.library.numpy_signatures import arguments_of_numpy
from shapefix.library.ops.nested_lists import leaf_dtype, nested_sizes
from shapefix.library.ops.value_range import (
    any_of,
    counted,
    fitting,
    full_of,
    largest,
    listed,
    range_of,
    selected,
)
from shapefix.library.python.random_numbers import drawn_item
from shapefix.library.python.unordered import array_of_one
from shapefix.library.registry import declare, function, method
from shapefix.library.signatures import BoundArguments, numbers
from shapefix.library.tensors import as_result, device_asked, is_number
from shapefix.tensors.bounds import at_least
from shapefix.tensors.layout import Layout, contiguous, is_contiguous, unknown_strides
from shapefix.tensors.memory_format import preserve_format
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import ZERO, Size

ARRAY = "numpy.ndarray"
_TENSOR = "<tensor>"
"""Field of an array for its equivalent tensor."""
_DRAWN = "<drawn>"
"""Field of an array of random numbers for those at known positions."""
_BY_COLUMN = "<columns>"
"""Field of an array of two dimensions with the range of each column."""
_NAMES = {
    "builtins.float": "float64",
    "builtins.int": "int64",
    "builtins.bool": "bool",
    "numpy.bool_": "bool",
    "numpy.float_": "float64",
    "numpy.double": "float64",
    "numpy.single": "float32",
    "numpy.half": "float16",
    "numpy.int_": "int64",
    "numpy.long": "int64",
    "numpy.longlong": "int64",
    "numpy.intc": "int32",
    "numpy.ubyte": "uint8",
}
_SAME = frozenset({"float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"})

_REDUCTIONS = ("sum", "mean", "median", "std", "var", "max", "min", "amax", "amin")
SERIES = "pandas.Series"

declare(ARRAY, "builtins.object")
declare(SERIES, "builtins.object")


def _ordered(given: BoundArguments, layout: Layout | None) -> Layout | None:
    """Layout of a new array: rows first, unless the code requests another order."""
    if layout is None or given.is_none("order") or given.text("order") in ("C", "K", "A"):
        return layout
    return unknown_strides(layout.sizes)


def as_array(value: Value | None) -> TensorValue | None:
    """View of a numpy array as a tensor; None for other values."""
    if not isinstance(value, LibraryObject) or value.kind not in (ARRAY, SERIES):
        return None
    tensor = value.fields.get(_TENSOR)
    return tensor if isinstance(tensor, TensorValue) else None


def series_of(value: Value) -> Value:
    """Column of a table with the numbers of an array; other values as they are."""
    if not isinstance(value, LibraryObject) or value.kind != ARRAY:
        return value
    return LibraryObject(SERIES, {}, value.place, dict(value.fields))


def numpy_dtype(value: Value | None) -> str | None:
    """Dtype named to numpy by `np.float32`, `float` or "float32"."""
    if isinstance(value, Reference):
        module, _, last = value.name.rpartition(".")
        return _NAMES.get(value.name) or (last if module == "numpy" and last in _SAME else None)
    if isinstance(value, Constant) and isinstance(value.value, str):
        name = {"float": "float64", "int": "int64"}.get(value.value, value.value)
        return name if name in _SAME else None
    return None


def array_of(call: Call, sizes: list[Size] | None, dtype: str | None) -> Value:
    layout = None if sizes is None else contiguous(sizes)
    given = arguments_of_numpy(call)
    if _may_hold_objects(given):
        return Unknown()
    return new_array(call, _ordered(given, layout) if "order" in given.values else layout, dtype)


def _may_hold_objects(given: BoundArguments) -> bool:
    """Whether the code states a dtype other than those of numbers: the elements may be lists, or plots."""
    stated = given.values.get("dtype")
    return stated is not None and not given.is_none("dtype") and numpy_dtype(stated) is None


def array_like(call: Call, held: TensorValue, dtype: str | None) -> Value:
    """Create an array of the sizes of another one."""
    return new_array(call, _copied(held.layout), dtype, held)


def new_array(
    call: Call, layout: Layout | None, dtype: str | None, before: TensorValue | None = None
) -> Value:
    """Create an array of this layout; before is the source array."""
    if dtype is None and layout is None:
        return Unknown()
    op = Op.NUMPY_CREATION if before is None else Op.NUMPY_CONVERSION
    made = as_result(call, layout, op, dtype=dtype, device=ASKED_CPU)
    if made.origin is not None and before is not None:
        made.origin.source = before.origin
    return LibraryObject(ARRAY, {}, call.place, {_TENSOR: made})


def with_range(made: Value, known: ValueRange | None) -> Value:
    """Array with a known smallest and largest element, as far as its dtype holds them; returns it."""
    array = as_array(made)
    if array is not None:
        array.extremes = fitting(known, array.dtype)
    return made


def with_numbers_of(call: Call, held: TensorValue, layout: Layout | None, dtype: str | None) -> Value:
    """Array with the numbers of another one, in this layout and dtype."""
    return with_range(new_array(call, layout, dtype, held), range_of(held))


def _copied(layout: Layout | None) -> Layout | None:
    """Layout of a copy in numpy's order K: some dense one."""
    return None if layout is None else layout if is_contiguous(layout) else unknown_strides(layout.sizes)


def stated_dtype(given: BoundArguments, default: str | None) -> str | None:
    return default if given.is_none("dtype") else numpy_dtype(given.value("dtype"))


@method(ARRAY, "sum", "mean", "std", "var", "max", "min")
@function(*(f"numpy.{name}" for name in _REDUCTIONS))
def reduced(call: Call) -> Value:
    """Sum or mean over some axes, or over all: a scalar of numpy is an array of rank 0."""
    given, name = arguments_of_numpy(call), call.name.rpartition(".")[2].removeprefix("a")
    source = call.receiver if call.receiver is not None else given.value("a")
    held, keeps = as_array(source), given.flag("keepdims")
    plain = (
        ("dtype" not in given.values or given.is_none("dtype") is True)
        and given.is_none("out") is True
        and not call.arguments.open
        and call.arguments.keywords.keys() <= given.values.keys()
    )
    over_all = plain and given.is_none("axis") is True and keeps is False
    if held is None and over_all and leaf_dtype(source) in ("int64", "float32"):
        # A list of numbers: those of Python are float64.
        dtype = "float64" if leaf_dtype(source) == "float32" else "int64"
        return new_array(call, contiguous([]), _of_reduction(dtype, name))
    if held is not None and over_all:
        made = new_array(call, contiguous([]), _of_reduction(held.dtype, name), held)
        array = as_array(made)
        if array is not None and name == "max":
            array.extremes = largest(call, held)
        return made
    axes = numbers(given.value("axis"))
    if held is None or held.layout is None or not axes or keeps is None or not plain:
        return Unknown()
    rank = held.layout.rank
    if not all(-rank <= axis < rank for axis in axes):
        return Unknown()
    gone = {axis % rank for axis in axes}
    one = [Size.of(1)] if keeps else []
    sizes = [size for dim, each in enumerate(held.layout.sizes) for size in (one if dim in gone else [each])]
    layout = contiguous(sizes) if is_contiguous(held.layout) else unknown_strides(tuple(sizes))
    return new_array(call, layout, _of_reduction(held.dtype, name), held)


def _of_reduction(dtype: str | None, name: str) -> str | None:
    if dtype is None or dtype.startswith("float") or name in ("max", "min"):
        return dtype
    if name in ("mean", "median", "std", "var"):
        return "float64"
    return "int64" if dtype in ("bool", "int8", "int16", "int32", "int64") else None


@function("numpy.zeros", "numpy.ones", "numpy.empty")
def filled(call: Call) -> Value:
    given = arguments_of_numpy(call)
    made = array_of(call, given.shape("shape"), stated_dtype(given, "float64"))
    number = {"zeros": Constant(0), "ones": Constant(1)}.get(call.name.rpartition(".")[2])
    return made if number is None else with_range(made, range_of(number))


@function("numpy.full")
def full(call: Call) -> Value:
    given = arguments_of_numpy(call)
    made = array_of(call, given.shape("shape"), stated_dtype(given, _scalar(given.value("fill_value"))))
    return with_range(made, full_of(TensorValue(), given.value("fill_value")).extremes)


def _scalar(value: Value | None) -> str | None:
    """Dtype of the numpy scalar for a Python number."""
    kinds = {bool: "bool", int: "int64", float: "float64"}
    return kinds.get(type(value.value)) if isinstance(value, Constant) else None


@function("numpy.arange")
def arange(call: Call) -> Value:
    given = arguments_of_numpy(call)
    bounds = [given.values[name] for name in ("start", "stop", "step") if name in given.values]
    if call.arguments.open or not all(map(is_number, bounds)):
        return Unknown()
    whole = all(isinstance(v, Integer) or (isinstance(v, Constant) and type(v.value) is int) for v in bounds)
    kinds = [_scalar(value) for value in bounds]
    default = "int64" if whole else "float64" if "float64" in kinds else None
    numbers = [value.value for value in bounds if isinstance(value, Constant) and type(value.value) is int]
    length = given.shape("stop") if len(bounds) == 1 and whole else [Size.symbol("length")]
    if len(numbers) == len(bounds) > 1 and numbers[2:] != [0]:
        length = [Size.of(len(range(*numbers)))]
    made = array_of(call, length, stated_dtype(given, default))
    if isinstance(bounds[-1], Constant) and bounds[-1].value == 1 and len(bounds) == 3:
        bounds.pop()
    ends = [as_size(value) for value in bounds[:2]] or [None]
    first, behind = (ZERO, ends[0]) if len(ends) == 1 else (ends[0], ends[-1])
    if not whole or len(bounds) > 2 or first is None or behind is None:
        return made
    return with_range(made, counted(TensorValue(), first, behind).extremes)


@function("numpy.linspace")
def linspace(call: Call) -> Value:
    given = arguments_of_numpy(call)
    if not all(is_number(given.value(name)) for name in ("start", "stop")):
        # Arrays as bounds give an array with their dimensions, too.
        return Unknown()
    return array_of(call, given.shape("num"), stated_dtype(given, "float64"))


def stack_of(data: Value | None) -> TensorValue | None:
    """Tensor of the rows in a list of arrays; None for other values, or for arrays of several sizes."""
    items = elements(data)
    one = as_array(items[0] if items else data.element if isinstance(data, ListValue) else None)
    if one is None or one.dtype is None or one.layout is None:
        return None
    axes = data.axes if isinstance(data, ListValue) else NO_AXES
    if any(varying(size, axes) is not None for size in one.layout.sizes):
        return None
    held = [as_array(item) for item in items] if items else [one]
    layouts = [None if each is None else each.layout for each in held]
    if any(each is None or each.dtype != one.dtype for each in held):
        return None
    known = [layout.sizes for layout in layouts if layout is not None]
    if len(known) < len(layouts) or any(sizes != known[0] for sizes in known):
        # Arrays of different sizes do not make one of numbers.
        return None
    rows = Size.of(len(items)) if items else data.length if isinstance(data, ListValue) else None
    made = TensorValue(contiguous([rows or Size.symbol("rows"), *known[0]]), dtype=one.dtype)
    made.origin = one.origin
    return made


@function("numpy.array", "numpy.asarray")
def array(call: Call) -> Value:
    """Create an array from rows."""
    given = arguments_of_numpy(call)
    data = next(iter(given.values.values()))
    if given.is_none("dtype"):
        note_rows(call, data)
    if "ndmin" in given.values and given.number("ndmin") != 0:
        return Unknown()
    one = array_of_one(call) if len(given.values) == 1 or given.is_none("dtype") else None
    if one is not None:
        return one
    stacked = stack_of(data)
    if stacked is not None and not _may_hold_objects(given):
        return new_array(call, stacked.layout, stated_dtype(given, stacked.dtype), stacked)
    if elements(data) is None:
        held = as_array(data)
        if held is None or call.arguments.open or _may_hold_objects(given):
            return Unknown()
        layout = _ordered(given, _copied(held.layout))
        return with_numbers_of(call, held, layout, stated_dtype(given, held.dtype))
    sizes, leaf = nested_sizes(data), leaf_dtype(data)
    if sizes is None:
        return Unknown()
    made = array_of(call, sizes, stated_dtype(given, "float64" if leaf == "float32" else leaf))
    if isinstance(made, LibraryObject) and len(sizes) == 2:
        made.fields[_BY_COLUMN] = _ranges_of_columns(data)
    return with_range(made, listed(TensorValue(), data).extremes)


def _ranges_of_columns(rows: Value | None) -> tuple[ValueRange | None, ...]:
    """Range of each column of an array made of rows of known numbers."""
    cells = [elements(row) or () for row in elements(rows) or ()]
    columns = zip(*cells, strict=True) if len({len(row) for row in cells}) == 1 else ()
    return tuple(listed(TensorValue(), ListValue(tuple(column))).extremes for column in columns)


@renew
def _with_sizes(value: LibraryObject, renewed: Callable[[TensorValue], TensorValue]) -> LibraryObject:
    """Array with sizes varying in another way; the array itself if they do not."""
    held = as_array(value)
    made = held if held is None else renewed(held)
    if made is held or made is None:
        return value
    return LibraryObject(value.kind, {}, value.place, {**value.fields, _TENSOR: made}, value.facts)


@method(ARRAY, "astype")
def converted(call: Call) -> Value:
    held, given = as_array(call.receiver), arguments_of_numpy(call)
    layout = None if held is None else _ordered(given, _copied(held.layout))
    if _may_hold_objects(given):
        return Unknown()
    made = new_array(call, layout, numpy_dtype(given.value("dtype")), held)
    return made if held is None else with_range(made, fitting(range_of(held), held.dtype))


@method(ARRAY, "copy")
def copied(call: Call) -> Value:
    held = as_array(call.receiver)
    layout = None if held is None or held.layout is None else contiguous(held.layout.sizes)
    if arguments_of_numpy(call).text("order") != "C":
        layout = None if layout is None else unknown_strides(layout.sizes)
    if held is None:
        return Unknown()
    return with_numbers_of(call, held, layout, held.dtype)


@method(ARRAY, "__setitem__")
def written(call: Call) -> Value:
    """Forget the numbers of an array after a write of others."""
    held, value = as_array(call.receiver), call.value(1)
    if held is None:
        return NONE
    whole = held.storage.whole or held
    known, number = range_of(whole), range_of(value) or listed(TensorValue(), value).extremes
    is_larger = known is not None and number is not None and at_least(number.most - known.most, 0)
    is_certain = not any(frame.undecided for frame in call.ev.frames)
    if known is not None and number is not None and is_larger and is_certain:
        # Perhaps no other number is left. The write of a loop holds after it.
        both = any_of(known, number)
        added = ValueRange(number.least, number.most, True, None if both is None else both.values)
        for each in (held, whole):
            each.extremes = fitting(added, each.dtype)
    else:
        held.storage.overwritten = True
    return NONE


@method(ARRAY, "reshape")
def reshaped(call: Call) -> Value:
    held = as_array(call.receiver)
    if held is None or call.arguments.keywords:
        return Unknown()
    target = arguments_of_numpy(call).value("shape")
    made = call_library(call.ev, "torch.Tensor.reshape", Arguments([target]), call.place.node, held)
    layout = made.layout if isinstance(made, TensorValue) else None
    return of_same_memory(new_array(call, layout, held.dtype, held), held)


def of_same_memory(made: Value, held: TensorValue) -> Value:
    """Array with all the elements of another one, perhaps in its memory; returns it."""
    array = as_array(made)
    if array is not None:
        array.storage, array.extremes = held.storage, held.extremes
    return made


@method(ARRAY, "@shape")
def shape(call: Call) -> Value:
    held = as_array(call.receiver)
    if held is None or held.layout is None:
        return Unknown("shape")
    return TupleValue(tuple(map(integer, held.layout.sizes)))


@method(ARRAY, "__len__")
def length(call: Call) -> Value:
    held = as_array(call.receiver)
    return integer(held.layout.sizes[0]) if held and held.layout and held.layout.rank else Unknown()


@method(ARRAY, "__iter__")
def rows(call: Call) -> Value:
    """Views of the rows of an array of several dimensions, one by one."""
    held = as_array(call.receiver)
    if held is None or held.layout is None or held.layout.rank < 2:
        return Unknown()
    index = Integer(Size.symbol("i", least=0))
    view = part(Call(call.ev, f"{ARRAY}.__getitem__", call.place, Arguments([index]), call.receiver))
    return ListValue(None, view, held.layout.sizes[0])


@method(ARRAY, "__getitem__")
def part(call: Call) -> Value:
    """Part of an array by ints and slices; other indices follow numpy's own rules."""
    held = as_array(call.receiver)
    if held is None or len(call.arguments.positional) != 1:
        return Unknown()
    index = call.arguments.positional[0]
    entries = index.items if isinstance(index, TupleValue) else (index,)
    entries = tuple(NONE if isinstance(e, Reference) and e.name == "numpy.newaxis" else e for e in entries)
    index = TupleValue(entries) if isinstance(index, TupleValue) else entries[0]
    basic = all(
        isinstance(e, (Slice, Integer))
        or (isinstance(e, Constant) and (type(e.value) is int or e.value in (None, Ellipsis)))
        for e in entries
    )
    if held.layout is None or not basic:
        # A mask, or a list of indices: the rows keep their dtype.
        rows = new_array(call, _chosen_rows(call, held, entries), held.dtype, held)
        array, by = as_array(rows), [as_array(entry) or entry for entry in entries]
        if array is not None:
            selected(held, array, TupleValue(tuple(by)))
        return rows
    forward = tuple(_WHOLE if _is_reversed(entry) else entry for entry in entries)
    turned = any(one is not other for one, other in zip(forward, entries, strict=True))
    if turned:
        index = TupleValue(forward)
    made = call_library(call.ev, "operator.getitem", Arguments([held, index]), call.place.node)
    layout = made.layout if isinstance(made, TensorValue) else None
    if turned and layout is not None:
        # Some of its strides are negative, which no tensor has.
        layout = unknown_strides(layout.sizes)
    part_ = new_array(call, layout, held.dtype, held)
    array = as_array(part_)
    if array is not None:
        array.storage = held.storage
        held.storage.whole = held.storage.whole or held
        if isinstance(made, TensorValue):
            array.extremes = made.extremes
        if isinstance(call.receiver, LibraryObject) and isinstance(part_, LibraryObject):
            _note_number(call, call.receiver, part_, index)
        if array.extremes is None and isinstance(call.receiver, LibraryObject):
            array.extremes = _range_of_column(call.receiver.fields.get(_BY_COLUMN), index)
    return part_


def _chosen_rows(call: Call, held: TensorValue, entries: Sequence[Value]) -> Layout | None:
    """Layout of the rows at positions in an array: `x[order]`; None for other indices."""
    by = as_array(entries[0]) if len(entries) == 1 else None
    if held.layout is None or by is None or by.dtype not in ("int32", "int64") or not held.layout.rank:
        return None
    return None if by.layout is None else contiguous((*by.layout.sizes, *held.layout.sizes[1:]))


_WHOLE = Slice(NONE, NONE, NONE)


def _note_number(call: Call, source: LibraryObject, made: LibraryObject, index: Value) -> None:
    """Record the random number at an index: the same one each time."""
    scalar, position = as_array(made), as_size(index)
    if scalar is None or scalar.layout is None or scalar.layout.rank or position is None:
        return
    if scalar.storage.overwritten:
        return
    drawn = source.fields.setdefault(_DRAWN, {})
    if position not in drawn:
        drawn[position] = drawn_item(call, scalar)
    made.fields[WHOLE] = drawn[position]


def _is_reversed(entry: Value) -> bool:
    """Check for `::-1`: all elements in reverse order."""
    if not isinstance(entry, Slice):
        return False
    start, stop, step = (
        each.value if isinstance(each, Constant) else entry for each in (entry.start, entry.stop, entry.step)
    )
    return start is None and stop is None and step == -1


def _range_of_column(ranges: object, index: Value) -> ValueRange | None:
    """Range of the column chosen by `data[:, -1]`."""
    if not isinstance(ranges, tuple) or not isinstance(index, TupleValue) or len(index.items) != 2:
        return None
    rows, column = index.items
    is_whole = isinstance(rows, Slice) and all(
        isinstance(end, Constant) and end.value is None for end in (rows.start, rows.stop, rows.step)
    )
    if not is_whole or not isinstance(column, Constant) or type(column.value) is not int:
        return None
    found = ranges[column.value] if -len(ranges) <= column.value < len(ranges) else None
    return found if isinstance(found, ValueRange) else None


def as_tensor_of(
    call: Call, array: TensorValue, dtype: str | None = None, *, copies: bool = True
) -> TensorValue:
    """Convert an array to a tensor; dtype is the target of a conversion on the way."""
    layout = array.layout
    if layout is not None and (copies or (dtype is not None and dtype != array.dtype)):
        layout = preserve_format(layout)
    made = as_result(call, layout, Op.FROM_NUMPY, dtype=dtype or array.dtype, device=device_asked(call))
    if made.origin is not None:
        made.origin.source = array.origin
    made.extremes = fitting(fitting(range_of(array), array.dtype), dtype or array.dtype)
    if not copies:
        made.storage = array.storage
    return made
