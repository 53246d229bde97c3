"""Random draws and table lookups: contiguous results."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value, as_tensor
from shapefix.library.registry import function, operation, tensor_function
from shapefix.library.signatures import arguments_of
from shapefix.library.tensors import contiguous_result, dtype_of
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.ops import Op
from shapefix.tensors.tensor_iterator import broadcast_sizes


@operation("bernoulli")
@tensor_function("torch.poisson")
def drawn_like(call: Call, tensor: TensorValue) -> Value:
    sizes = None if tensor.layout is None else tensor.layout.sizes
    return contiguous_result(call, sizes, Op.RANDOM_SAMPLING, dtype=tensor.dtype, device=tensor.device)


@operation("multinomial")
def multinomial(call: Call, tensor: TensorValue) -> Value:
    count = arguments_of(call).size("num_samples")
    sizes = None
    if tensor.layout is not None and tensor.layout.rank and count is not None:
        sizes = (*tensor.layout.sizes[:-1], count)
    return contiguous_result(call, sizes, Op.RANDOM_SAMPLING, dtype="int64", device=tensor.device)


@function("torch.normal")
def normal(call: Call) -> Value:
    """Draw with a given size, or with the size of the means and deviations."""
    given = arguments_of(call)
    if not given.is_none("size"):
        dtype = dtype_of(given.value("dtype")) or "float32"
        return contiguous_result(call, given.shape("size"), Op.RANDOM_SAMPLING, dtype=dtype)
    parameters = [as_tensor(given.value(name)) for name in ("mean", "std")]
    tensors = [tensor for tensor in parameters if tensor is not None]
    layouts = [tensor.layout for tensor in tensors if tensor.layout is not None]
    if not layouts or len(layouts) < len(tensors):
        return contiguous_result(call, None, Op.RANDOM_SAMPLING)
    try:
        sizes = broadcast_sizes(*(layout.sizes for layout in layouts))
    except ShapeError:
        return TensorValue()
    return contiguous_result(call, sizes, Op.RANDOM_SAMPLING)


@tensor_function("torch.bucketize", "torch.isin")
def looked_up(call: Call, tensor: TensorValue) -> Value:
    sizes = None if tensor.layout is None else tensor.layout.sizes
    dtype = "bool" if call.name.endswith("isin") else None
    return contiguous_result(call, sizes, Op.SEARCHSORTED, dtype=dtype, device=tensor.device)


@tensor_function("torch.searchsorted")
def searched(call: Call, tensor: TensorValue) -> Value:
    """Find a place for each of the values."""
    values = as_tensor(arguments_of(call).value("input"))
    sizes = None if values is None or values.layout is None else values.layout.sizes
    return contiguous_result(call, sizes, Op.SEARCHSORTED)
