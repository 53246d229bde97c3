"""Tensor-creating functions: contiguous, of the given sizes."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.devices import ASKED_CPU, by_default, placed
from shapefix.domains.precision import Precision
from shapefix.domains.tokens import row_of
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, Shape, Sizes, TupleValue, elements
from shapefix.interpreter.tensor_values import Device, TensorValue, tensor_row
from shapefix.interpreter.values import NONE, Constant, Integer, Reference, Unknown, Value, as_size
from shapefix.library.data.rows import note_rows
from shapefix.library.numpy_arrays import as_array, as_tensor_of
from shapefix.library.ops.conversions import in_memory_format
from shapefix.library.ops.nested_lists import leaf_dtype, nested_sizes
from shapefix.library.ops.value_range import counted, drawn, full_of, listed
from shapefix.library.pandas.tables import note_table
from shapefix.library.registry import function, tensor_function, tensor_method
from shapefix.library.required_versions import is_at_least
from shapefix.library.signatures import BoundArguments, arguments_of
from shapefix.library.tensors import (
    alias_of,
    as_result,
    as_view,
    contiguous_result,
    copied,
    default_dtype,
    device_asked,
    dtype_of,
)
from shapefix.tensors import dims
from shapefix.tensors.layout import Layout
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import ZERO, Size
from shapefix.tensors.quotients import ceil_divide


def _described(call: Call, sizes: list[Size] | None, default: str | None) -> TensorValue:
    dtype = _dtype(arguments_of(call), default)
    return contiguous_result(call, sizes, Op.CREATION, dtype=dtype, device=device_asked(call))


def _dtype(given: BoundArguments, default: str | None) -> str | None:
    """Stated dtype of a new tensor; default if the code states none."""
    stated = given.value("dtype")
    # The default of randint is the number of a dtype.
    return default if isinstance(stated, Constant) else dtype_of(stated)


def device_like(call: Call, tensor: TensorValue) -> Device | None:
    """Device of a tensor created after another one: the other's, unless the code names one."""
    given = call.arguments.keywords.get("device", NONE)
    if isinstance(given, Constant) and given.value is None and not call.arguments.open:
        return tensor.device
    return device_asked(call)


@function("torch.zeros", "torch.ones", "torch.empty", "torch.rand", "torch.randn")
def filled(call: Call) -> Value:
    return _described(call, arguments_of(call).shape("size"), default_dtype(call))


_INFERS_DTYPE = "1.7"
"""The first torch with `full` of the dtype of its value: it was float32, then an error."""


@function("torch.full")
def full(call: Call) -> Value:
    given = arguments_of(call)
    value, default = given.value("fill_value"), None
    if isinstance(value, Constant):
        default = {bool: "bool", int: "int64", float: default_dtype(call)}.get(type(value.value))
        if not isinstance(value.value, float) and not is_at_least(call.ev, _INFERS_DTYPE, "torch"):
            default = None
    return full_of(_described(call, given.shape("size"), default), value)


@function("torch.randint")
def randint(call: Call) -> Value:
    given = arguments_of(call)
    made = _described(call, given.shape("size"), "int64")
    return drawn(made, given.values.get("low"), given.value("high"))


@function("torch.randperm")
def randperm(call: Call) -> Value:
    size = arguments_of(call).size("n")
    return _described(call, None if size is None else [size], "int64")


@function("torch.arange", "torch.range")
def arange(call: Call) -> Value:
    bound = arguments_of(call).values
    given = [bound[name] for name in ("start", "end", "step") if name in bound]
    if len(given) == 3 and isinstance(given[2], Constant) and given[2].value == 1:
        given = given[:2]
    whole = all(
        isinstance(v, (Integer, Unknown)) or (isinstance(v, Constant) and type(v.value) is int) for v in given
    )
    bounds = [as_size(value) for value in given]
    dtype = "int64" if given and all(isinstance(v, (Integer, Constant)) for v in given) and whole else None
    # The deprecated torch.range includes its end.
    is_plain = call.name == "torch.arange" and not call.arguments.open
    if not whole or None in bounds or not bounds or not is_plain:
        return _described(call, [Size.symbol("length")], dtype)
    sizes = [bound for bound in bounds if bound is not None]
    if len(sizes) == 1:
        return counted(_described(call, [sizes[0]], dtype), ZERO, sizes[0])
    length = sizes[1] - sizes[0]
    if len(sizes) == 3:
        step = sizes[2].value
        length = ceil_divide(length, step) if step is not None and step > 0 else Size.symbol("length")
    if length.value is None and not length.only_symbol:
        # The difference of two unknown bounds may be anything.
        length = length if all(isinstance(v, (Integer, Constant)) for v in given) else Size.symbol("length")
    made = _described(call, [length], dtype)
    return counted(made, sizes[0], sizes[1]) if len(sizes) == 2 else made


@function("torch.linspace", "torch.logspace")
def linspace(call: Call) -> Value:
    steps = arguments_of(call).size("steps")
    return _described(call, [steps if steps is not None else Size.symbol("steps")], default_dtype(call))


@function("torch.set_default_dtype", "torch.set_default_tensor_type")
def set_default_dtype(call: Call) -> Value:
    """Change the default dtype of tensors created from now on."""
    call.ev.state[Precision].default_dtype = None
    return NONE


@function("torch.eye")
def eye(call: Call) -> Value:
    given = arguments_of(call)
    rows = given.size("n")
    columns = rows if given.is_none("m") else given.size("m")
    return _described(call, None if rows is None or columns is None else [rows, columns], default_dtype(call))


@function("torch.tensor", "torch.as_tensor", "torch.asarray")
def tensor(call: Call) -> Value:
    given = arguments_of(call)
    data = given.value("obj" if call.name == "torch.asarray" else "data")
    note_table(call, data)
    is_stated = not given.is_none("dtype")
    dtype = dtype_of(given.value("dtype"))
    if isinstance(data, TensorValue):
        is_same = call.name != "torch.tensor"
        if is_same and (not is_stated or dtype == data.dtype):
            return data
        copy = copied(call, data, Op.TENSOR)
        copy.dtype = dtype if is_stated else data.dtype
        copy.device = device_like(call, data)
        copy.row = tensor_row(data)
        return copy
    array = as_array(data)
    if array is not None:
        made = as_tensor_of(call, array, dtype, copies=call.name == "torch.tensor")
        if is_stated:
            made.dtype = dtype
        return made
    sizes = nested_sizes(data)
    note_rows(call, data)
    if sizes is None:
        # A numpy array that is not copied keeps its strides.
        whole = call.name == "torch.tensor"
        device = device_asked(call) if whole and not isinstance(data, Unknown) else None
        return as_result(call, None, Op.CREATION, dtype=dtype, device=device, is_contiguous=whole)
    if not is_stated:
        leaf = leaf_dtype(data)
        dtype = default_dtype(call) if leaf == "float32" else leaf
    made = contiguous_result(call, sizes, Op.CREATION, dtype=dtype, device=device_asked(call))
    made.row = row_of(data)
    return listed(made, data)


@function("torch.from_numpy")
def from_numpy(call: Call) -> Value:
    given = arguments_of(call).value("ndarray")
    note_table(call, given)
    held = as_array(given)
    if held is None:
        return TensorValue(device=placed(call.ev, ASKED_CPU, call.place))
    made = as_tensor_of(call, held, copies=False)
    made.device = placed(call.ev, ASKED_CPU, call.place)
    return made


@function("torch.frombuffer")
def from_outside(call: Call) -> Value:
    return Unknown()


def _is_written_out(call: Call) -> bool:
    """Check for a tuple or list in brackets as the first argument."""
    node = call.place.node
    return (
        isinstance(node, cst.Call)
        and bool(node.args)
        and isinstance(node.args[0].value, (cst.Tuple, cst.List))
    )


@function("torch.Tensor", "torch.FloatTensor", "torch.LongTensor", "torch.BoolTensor", "torch.IntTensor")
def legacy(call: Call) -> Value:
    dtype = {"FloatTensor": "float32", "LongTensor": "int64", "BoolTensor": "bool", "IntTensor": "int32"}.get(
        call.name.rpartition(".")[2], default_dtype(call)
    )
    given = arguments_of(call)
    data = given.value("data")
    note_table(call, data)
    # They take the CPU only as their `device`.
    device = None if call.arguments.open else by_default(call.ev, call.place)
    if len(call.arguments.positional) > 1 or call.arguments.open or _is_size(data):
        return contiguous_result(call, given.shape("data"), Op.CREATION, dtype=dtype, device=device)
    if given.is_none("data"):
        return contiguous_result(call, [Size.of(0)], Op.CREATION, dtype=dtype, device=device)
    array = as_array(data)
    if array is not None:
        # An array of the dtype shares its memory.
        made = as_tensor_of(call, array, dtype, copies=array.dtype != dtype)
        # Unlike torch.tensor, it never takes the dtype of the array, an unknown default dtype included.
        made.dtype = dtype
        return made
    if isinstance(data, TensorValue):
        # `torch.Tensor(x)` is another tensor with the memory of x, and keeps its dtype; the others reject it.
        return alias_of(data)
    if isinstance(data, TupleValue) and not _is_written_out(call):
        # Perhaps a part of a torch.Size, which would be sizes and not numbers.
        return contiguous_result(call, None, Op.CREATION, dtype=dtype, device=device)
    note_rows(call, data)
    if isinstance(data, (Unknown, Reference)) and call.name == "torch.Tensor":
        # It may be a tensor, whose dtype stays the same.
        return contiguous_result(call, None, Op.CREATION, dtype=None)
    return contiguous_result(call, nested_sizes(data), Op.CREATION, dtype=dtype, device=device)


def _is_size(value: Value) -> bool:
    is_number = isinstance(value, Constant) and value.value is not None
    return is_number or isinstance(value, (Integer, Shape, Sizes))


@tensor_function(
    "torch.zeros_like",
    "torch.ones_like",
    "torch.empty_like",
    "torch.rand_like",
    "torch.randn_like",
    "torch.full_like",
    "torch.randint_like",
)
def like(call: Call, tensor: TensorValue) -> Value:
    wanted = call.arguments.keywords.get("memory_format")
    is_kept = wanted is None and not call.arguments.open
    result = copied(call, tensor, Op.CREATION) if is_kept else in_memory_format(call, tensor, wanted)
    result.device = device_like(call, tensor)
    result.dtype = _dtype(arguments_of(call), tensor.dtype)
    return result


@tensor_method("new_zeros", "new_ones", "new_empty", "new_full")
def new(call: Call, tensor: TensorValue) -> Value:
    return _created_like(call, tensor, arguments_of(call).shape("size"))


def _created_like(call: Call, tensor: TensorValue, sizes: list[Size] | None) -> Value:
    """New tensor of the dtype and on the device of another one, unless the code states others."""
    dtype, device = _dtype(arguments_of(call), tensor.dtype), device_like(call, tensor)
    return contiguous_result(call, sizes, Op.CREATION, dtype=dtype, device=device)


@tensor_method("new_tensor")
def new_tensor(call: Call, tensor: TensorValue) -> Value:
    return _created_like(call, tensor, nested_sizes(arguments_of(call).value("data")))


@function("torch.meshgrid")
def meshgrid(call: Call) -> Value:
    given = arguments_of(call)
    tensors = given.value("tensors")
    axes = [value for value in elements(tensors) or (tensors,) if isinstance(value, TensorValue)]
    if not axes or any(axis.layout is None or axis.layout.rank != 1 for axis in axes):
        return ListValue(None, TensorValue())
    layouts = [axis.layout for axis in axes if axis.layout is not None]
    indexing = "ij" if given.is_none("indexing") else given.text("indexing")
    if indexing not in ("ij", "xy"):
        return TupleValue(tuple(TensorValue(dtype=axis.dtype) for axis in axes))
    grids = [as_view(call, axis, _grid(layouts, place), Op.MESHGRID) for place, axis in enumerate(axes)]
    if indexing == "xy" and len(grids) > 1:
        for grid in grids:
            grid.layout = None if grid.layout is None else dims.transpose(grid.layout, 0, 1)
    return TupleValue(tuple(grids))


def _grid(axes: list[Layout], place: int) -> Layout:
    """Layout of an axis expanded along the dimensions of the other axes."""
    layout = axes[place]
    for dim in range(len(axes)):
        if dim != place:
            layout = dims.unsqueeze(layout, dim)
    return dims.expand(layout, [axis.sizes[0] for axis in axes])
