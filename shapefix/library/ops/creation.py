"""Functions that create tensors: contiguous, of the given sizes."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.precision import Precision
from shapefix.domains.tokens import row_of
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, Shape, Sizes, TupleValue, elements
from shapefix.interpreter.tensor_values import Device, TensorValue, tensor_row
from shapefix.interpreter.values import NONE, Constant, Integer, Unknown, Value, as_size
from shapefix.library.data.rows import note_rows
from shapefix.library.numpy_arrays import as_array, as_tensor_of
from shapefix.library.ops.nested_lists import leaf_dtype, nested_sizes
from shapefix.library.ops.value_range import counted, drawn, full_of, listed
from shapefix.library.registry import function, tensor_function, tensor_method
from shapefix.library.tensors import (
    as_result,
    contiguous_result,
    copied,
    default_dtype,
    device_asked,
    dtype_of,
    size_list,
    sizes_from,
)
from shapefix.tensors.layout import contiguous
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import ZERO, Size
from shapefix.tensors.quotients import ceil_divide


def _described(call: Call, sizes: list[Size] | None, default: str | None) -> TensorValue:
    given = call.arguments.keywords
    dtype = dtype_of(given["dtype"]) if "dtype" in given else None if call.arguments.open else default
    return contiguous_result(call, sizes, Op.CREATION, dtype=dtype, device=device_asked(call))


def device_like(call: Call, tensor: TensorValue) -> Device | None:
    """Device of a tensor created after another one: that of the other, unless the code names one."""
    if "device" not in call.arguments.keywords and not call.arguments.open:
        return tensor.device
    return device_asked(call)


@function("torch.zeros", "torch.ones", "torch.empty", "torch.rand", "torch.randn")
def filled(call: Call) -> Value:
    return _described(call, sizes_from(call), default_dtype(call))


@function("torch.full")
def full(call: Call) -> Value:
    value = call.value(1, "fill_value")
    default = None
    if isinstance(value, Constant):
        default = {bool: "bool", int: "int64", float: default_dtype(call)}.get(type(value.value))
    return full_of(_described(call, size_list(call.value(0, "size")), default), value)


@function("torch.randint")
def randint(call: Call) -> Value:
    given = call.arguments.positional
    shapes = [value for value in given if isinstance(value, (TupleValue, ListValue))]
    sizes = size_list(shapes[0] if shapes else call.arguments.keywords.get("size"))
    return drawn(call, _described(call, sizes, "int64"))


@function("torch.randperm")
def randperm(call: Call) -> Value:
    size = as_size(call.value(0, "n"))
    return _described(call, None if size is None else [size], "int64")


@function("torch.arange", "torch.range")
def arange(call: Call) -> Value:
    given = [*call.arguments.positional]
    for name in ("start", "end", "step"):
        if name in call.arguments.keywords:
            if len(given) != ("start", "end", "step").index(name):
                return _described(call, [Size.symbol("length")], None)
            given.append(call.arguments.keywords[name])
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
    steps = as_size(call.value(2, "steps"))
    return _described(call, [steps if steps is not None else Size.symbol("steps")], default_dtype(call))


@function("torch.set_default_dtype", "torch.set_default_tensor_type")
def set_default_dtype(call: Call) -> Value:
    """Change the default dtype of tensors created from now on."""
    call.ev.state[Precision].default_dtype = None
    return NONE


@function("torch.eye")
def eye(call: Call) -> Value:
    rows = as_size(call.value(0, "n"))
    columns = as_size(call.value(1, "m")) or rows
    return _described(call, None if rows is None or columns is None else [rows, columns], default_dtype(call))


@function("torch.tensor", "torch.as_tensor", "torch.asarray")
def tensor(call: Call) -> Value:
    data = call.value(0, "data")
    if isinstance(data, TensorValue):
        if call.name != "torch.tensor":
            return data
        copy = copied(call, data, Op.TENSOR)
        copy.device = device_like(call, data)
        copy.row = tensor_row(data)
        return copy
    given = call.arguments.keywords
    dtype = dtype_of(given.get("dtype"))
    array = as_array(data)
    if array is not None:
        made = as_tensor_of(call, array, dtype, copies=call.name == "torch.tensor")
        if "dtype" in given or call.arguments.open:
            made.dtype = dtype
        return made
    sizes = nested_sizes(data)
    note_rows(call, data)
    if sizes is None:
        # A numpy array that is not copied keeps its strides.
        whole = call.name == "torch.tensor"
        device = device_asked(call) if whole and not isinstance(data, Unknown) else None
        return as_result(call, None, Op.CREATION, dtype=dtype, device=device, is_contiguous=whole)
    if "dtype" not in given and not call.arguments.open:
        leaf = leaf_dtype(data)
        dtype = default_dtype(call) if leaf == "float32" else leaf
    made = contiguous_result(call, sizes, Op.CREATION, dtype=dtype, device=device_asked(call))
    made.row = row_of(data)
    return listed(made, data)


@function("torch.load", "torch.frombuffer")
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
    given = call.arguments.positional
    if len(given) > 1 or call.arguments.open or (given and _is_size(given[0])):
        return contiguous_result(call, sizes_from(call), Op.CREATION, dtype=dtype)
    array = as_array(call.value(0))
    if array is not None:
        return as_tensor_of(call, array, dtype)
    if given and isinstance(given[0], TupleValue) and not _is_written_out(call):
        # Perhaps a part of a torch.Size, which would be sizes and not numbers.
        return contiguous_result(call, None, Op.CREATION, dtype=dtype)
    note_rows(call, call.value(0))
    if given and len(given) == 1:
        note_rows(call, given[0])
    sizes = nested_sizes(call.value(0)) if given else [Size.of(0)]
    return contiguous_result(call, sizes, Op.CREATION, dtype=dtype)


def _is_size(value: Value) -> bool:
    return isinstance(value, (Integer, Constant, Shape, Sizes))


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
    named = dtype_of(call.arguments.keywords.get("dtype"))
    result = copied(call, tensor, Op.CREATION, named)
    result.device = device_like(call, tensor)
    if "dtype" in call.arguments.keywords and named is None:
        result.dtype = None
    return result


@tensor_method("new_zeros", "new_ones", "new_empty")
def new(call: Call, tensor: TensorValue) -> Value:
    return contiguous_result(
        call, sizes_from(call), Op.CREATION, dtype=_new_dtype(call, tensor), device=device_like(call, tensor)
    )


def _new_dtype(call: Call, tensor: TensorValue) -> str | None:
    """Dtype of a tensor created after another one."""
    given = call.arguments.keywords
    return None if call.arguments.open else dtype_of(given["dtype"]) if "dtype" in given else tensor.dtype


@tensor_method("new_full", "new_tensor")
def new_full(call: Call, tensor: TensorValue) -> Value:
    sizes = size_list(call.value(0)) if call.name.endswith("new_full") else nested_sizes(call.value(0))
    device = device_like(call, tensor)
    return contiguous_result(call, sizes, Op.CREATION, dtype=_new_dtype(call, tensor), device=device)


@function("torch.meshgrid")
def meshgrid(call: Call) -> Value:
    given = call.arguments.positional
    inner = elements(given[0]) if len(given) == 1 else None
    axes = [value for value in (inner if inner is not None else given) if isinstance(value, TensorValue)]
    if not axes or any(axis.layout is None or axis.layout.rank != 1 for axis in axes):
        return ListValue(None, TensorValue())
    lengths = [axis.layout.sizes[0] for axis in axes if axis.layout is not None]
    zero, one = Size.of(0), Size.of(1)
    grids = []
    for place in range(len(lengths)):
        strides = tuple(one if place == dim else zero for dim in range(len(lengths)))
        layout = contiguous(lengths)
        grids.append(
            as_result(call, type(layout)(layout.sizes, strides), Op.MESHGRID, dtype=axes[place].dtype)
        )
    if call.arguments.keywords and call.constant(-1, "indexing") != "ij":
        return TupleValue(tuple(TensorValue(dtype=axis.dtype) for axis in axes))
    return TupleValue(tuple(grids))
