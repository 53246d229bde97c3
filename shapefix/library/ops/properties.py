"""Properties of a tensor: sizes, rank, dtype, device."""

from __future__ import annotations

from shapefix.domains.gradients import Gradients, NoGradientRead, is_computed
from shapefix.domains.replaced_leaves import note_gradient_read
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import Shape, Sizes
from shapefix.interpreter.tensor_values import DeviceKind, TensorValue, requires_grad
from shapefix.interpreter.values import (
    FALSE,
    NONE,
    TRUE,
    Constant,
    ReadNumber,
    Reference,
    Unknown,
    Value,
    integer,
)
from shapefix.library.numpy_arrays import new_array, of_same_memory
from shapefix.library.ops.clamped_exponentials import note_item
from shapefix.library.ops.value_range import only_number
from shapefix.library.python.random_numbers import drawn_item
from shapefix.library.registry import operation, tensor_method
from shapefix.library.rejections import by_position, reject
from shapefix.library.signatures import arguments_of
from shapefix.library.tensors import alias_of, new_size
from shapefix.tensors.dtypes import is_floating
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import is_contiguous, wrap_dim
from shapefix.tensors.polynomials import product


@tensor_method("@shape")
def shape(call: Call, tensor: TensorValue) -> Value:
    if tensor.layout is None:
        return Shape(tensor, lambda dim: new_size(call, dim))
    return Sizes(tuple(integer(size) for size in tensor.layout.sizes), tensor)


@tensor_method("size")
def size(call: Call, tensor: TensorValue) -> Value:
    if not call.arguments.positional and not call.arguments.keywords:
        return shape(call, tensor)
    dim = arguments_of(call).number("dim")
    if dim is None:
        return Unknown()
    if tensor.layout is not None:
        try:
            dim = wrap_dim(dim, tensor.layout.rank)
        except ShapeError as error:
            reject(call, error, by_position(call))
            return Unknown()
    return integer(tensor.size(dim, new_size(call, dim)))


@operation("numel")
def numel(call: Call, tensor: TensorValue) -> Value:
    return Unknown() if tensor.layout is None else integer(tensor.layout.numel)


@tensor_method("dim", "ndimension")
def dim(call: Call, tensor: TensorValue) -> Value:
    return ndim(call, tensor)


@tensor_method("@ndim")
def ndim(call: Call, tensor: TensorValue) -> Value:
    return Unknown("ndim") if tensor.layout is None else Constant(tensor.layout.rank)


@tensor_method("stride")
def stride(call: Call, tensor: TensorValue) -> Value:
    return Unknown()


@tensor_method("is_contiguous")
def asks_contiguous(call: Call, tensor: TensorValue) -> Value:
    if tensor.layout is None or call.arguments.keywords or call.arguments.positional:
        return Unknown()
    known = is_contiguous(tensor.layout)
    return Unknown() if known is None else (TRUE if known else FALSE)


@tensor_method("@dtype")
def dtype(call: Call, tensor: TensorValue) -> Value:
    return Unknown("dtype") if tensor.dtype is None else Reference(f"torch.{tensor.dtype}")


@tensor_method("@grad")
def grad(call: Call, tensor: TensorValue) -> Value:
    """Report a tensor certainly without a gradient."""
    state = call.ev.state[Gradients]
    known = requires_grad(tensor)
    computed = known is True and not state.retained and is_computed(call.ev, tensor)
    note_gradient_read(call.ev, tensor, call.place)
    plain = known is False and tensor.graph is False and state.leaves.get(tensor, FALSE) is FALSE
    if tensor.certain and not tensor.own and (computed or plain):
        call.ev.emit(NoGradientRead(call.place, call.ev.calls, tensor, computed))
    return Unknown("grad")


@tensor_method("@grad_fn", "@requires_grad", "@is_leaf", "@layout")
def unknown_property(call: Call, tensor: TensorValue) -> Value:
    return Unknown(call.name.rpartition(".")[2])


@tensor_method("@is_cuda")
def is_cuda(call: Call, tensor: TensorValue) -> Value:
    device = tensor.device
    if device is not None and device.kind is DeviceKind.CPU:
        return FALSE
    is_named = device is not None and device.kind is DeviceKind.GPU and device.name.startswith("cuda")
    return TRUE if is_named else Unknown("is_cuda")


@tensor_method("@data")
def data(call: Call, tensor: TensorValue) -> Value:
    return alias_of(tensor)


@tensor_method("item")
def item(call: Call, tensor: TensorValue) -> Value:
    number = only_number(tensor) or drawn_item(call, tensor)
    if isinstance(number, Unknown) and tensor.certain:
        if is_floating(tensor.dtype or "") or requires_grad(tensor):
            number = ReadNumber(call.place, call.ev.calls)
    return note_item(call, tensor, number)


@tensor_method("tolist", "data_ptr", "element_size", "nelement", "get_device")
def out_of_torch(call: Call, tensor: TensorValue) -> Value:
    return Unknown()


@tensor_method("numpy")
def to_numpy(call: Call, tensor: TensorValue) -> Value:
    """Array in the memory of the tensor; only the sizes of a possible array."""
    if tensor.certain and (tensor.layout is not None or tensor.dtype is not None):
        return of_same_memory(new_array(call, tensor.layout, tensor.dtype, tensor), tensor)
    array = Unknown()
    if tensor.layout is not None:
        sizes = tuple(integer(size) for size in tensor.layout.sizes)
        array.attributes["shape"] = Sizes(sizes, alias_of(tensor))
        array.attributes["ndim"] = Constant(tensor.layout.rank)
        array.attributes["size"] = integer(product(tensor.layout.sizes))
    return array


@tensor_method("register_hook")
def returns_none(call: Call, tensor: TensorValue) -> Value:
    return NONE
