"""Operations along dimensions: reductions, softmax, sorting, cumulative sums."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Reference, Unknown, Value
from shapefix.library.ops.broadcasts import note_whole_reduction
from shapefix.library.ops.elementwise import result_of
from shapefix.library.ops.value_range import largest
from shapefix.library.registry import operation, tensor_function
from shapefix.library.signatures import BoundArguments, arguments_of
from shapefix.library.tensors import as_result, contiguous_result, copied, dtype_of
from shapefix.tensors import dtype_checks, reductions
from shapefix.tensors.layout import Layout
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import ONE, Size

_OF_FLOATS = frozenset({"mean", "nanmean", "std", "var", "norm"})
"""Reductions that torch refuses for integers and booleans, without a dtype among the arguments."""
_TO_BOOL = frozenset({"any", "all"})
_TO_INT = frozenset({"argmax", "argmin", "count_nonzero"})


def _reduced(tensor: TensorValue, given: BoundArguments) -> Layout | None:
    """Layout after reducing the dimensions named by the call, or all of them."""
    if given.is_none("dim"):
        return Layout((), ())
    dims, keepdim = given.numbers("dim"), _keeps_dim(given)
    if tensor.layout is None or dims is None or keepdim is None:
        return None
    return reductions.reduce(tensor.layout, dims, keepdim)


def _keeps_dim(given: BoundArguments) -> bool | None:
    """Argument keepdim, missing in count_nonzero."""
    return given.flag("keepdim") if "keepdim" in given.values else False


@operation(
    "sum",
    "mean",
    "prod",
    "std",
    "var",
    "norm",
    "logsumexp",
    "amax",
    "amin",
    "any",
    "all",
    "argmax",
    "argmin",
    "nansum",
    "nanmean",
    "count_nonzero",
)
def reduce(call: Call, tensor: TensorValue) -> Value:
    name = call.name.rpartition(".")[2]
    given = arguments_of(call)
    first = given.value("dim")
    if name in ("std", "var") and isinstance(first, Constant) and isinstance(first.value, bool):
        # std(unbiased): of all elements.
        return TensorValue(dtype=tensor.dtype)
    if name in _OF_FLOATS and given.is_none("dtype") is not False:
        dtype_checks.floating(tensor.dtype)
    layout = _reduced(tensor, given)
    dtype = tensor.dtype
    if name in _TO_BOOL:
        dtype = "bool"
    elif name in _TO_INT or (
        name in ("sum", "prod") and dtype in ("bool", "int8", "int16", "int32", "uint8")
    ):
        dtype = "int64"
    if given.is_none("dtype") is False:
        dtype = dtype_of(given.value("dtype"))
    if name in ("sum", "mean") and layout is not None and layout.rank == 0:
        note_whole_reduction(call, tensor)
    result = as_result(call, layout, Op.REDUCTION, dtype=dtype, device=tensor.device, is_contiguous=True)
    if layout is None and _keeps_dim(given):
        for dim in given.numbers("dim") or ():
            result.set_size(dim, ONE)
    return result


@operation("max", "min", "median", "mode", "cummax", "cummin", "kthvalue", "aminmax")
def extreme(call: Call, tensor: TensorValue) -> Value:
    name = call.name.rpartition(".")[2]
    given = arguments_of(call)
    for other in (given.value("dim"), given.value("other")):
        if isinstance(other, TensorValue) and name in ("max", "min"):
            return result_of(call, [tensor, other], Op(name))
    if name in ("max", "min") and _may_be_tensor(given.value("dim")) and "dim" not in call.arguments.keywords:
        return Unknown()
    if given.is_none("dim") and name in ("max", "min", "median"):
        made = as_result(call, Layout((), ()), Op.REDUCTION, dtype=tensor.dtype, device=tensor.device)
        if name == "max":
            made.extremes = largest(call, tensor)
        return made
    if name == "aminmax":
        return TupleValue((TensorValue(dtype=tensor.dtype), TensorValue(dtype=tensor.dtype)), ("min", "max"))
    if name not in ("max", "min", "median"):
        return TupleValue(
            (TensorValue(dtype=tensor.dtype), TensorValue(dtype="int64")), ("values", "indices")
        )
    if not tensor.certain and name != "median":
        # An array of numpy gives the values only.
        return Unknown()
    layout = _reduced(tensor, given)
    values = as_result(
        call, layout, Op.REDUCTION, dtype=tensor.dtype, device=tensor.device, is_contiguous=True
    )
    indices = as_result(call, layout, Op.REDUCTION, dtype="int64", device=tensor.device, is_contiguous=True)
    return TupleValue((values, indices), ("values", "indices"))


def _may_be_tensor(value: Value) -> bool:
    """Check for an unknown second argument of `torch.max`: a dimension or another tensor."""
    if isinstance(value, Reference):
        return True
    # An unknown factor of a tensor has a size, too, if it is a number.
    return isinstance(value, Unknown) and not any(word in value.hint.lower() for word in ("dim", "axis"))


@operation("softmax", "log_softmax", namespaces=("torch", "torch.nn.functional", "torch.special"))
@tensor_function("torch.nn.functional.softmin")
def softmax(call: Call, tensor: TensorValue) -> Value:
    given = arguments_of(call)
    dtype = tensor.dtype if given.is_none("dtype") else dtype_of(given.value("dtype"))
    sizes = _along_a_dimension(call, tensor)
    op = Op(call.name.rpartition(".")[2])
    return normalized_along(contiguous_result(call, sizes, op, dtype=dtype, device=tensor.device), given)


def normalized_along(made: TensorValue, given: BoundArguments) -> TensorValue:
    """Note the normalized dimension of a softmax.

    Without one, torch takes the first dimension of 0, 1 or 3, otherwise the second (`_get_softmax_dim`).
    """
    rank = None if made.layout is None else made.layout.rank
    dim = given.number("dim")
    if given.is_none("dim") is True and rank is not None:
        dim = 0 if rank in (0, 1, 3) else 1
    if made.origin is not None and rank is not None and dim is not None and -rank <= dim < rank:
        made.origin.dim = dim % rank
    return made


def _along_a_dimension(call: Call, tensor: TensorValue) -> tuple[Size, ...] | None:
    """Sizes of a tensor, unchanged. Raises ShapeError for a missing dimension."""
    if tensor.layout is None:
        return None
    dim = arguments_of(call).number("dim")
    if dim is not None:
        return reductions.along_dim(tensor.layout, dim).sizes
    return tensor.layout.sizes


@operation("cumsum", "cumprod", "logcumsumexp")
def cumulative(call: Call, tensor: TensorValue) -> Value:
    sizes = _along_a_dimension(call, tensor)
    dtype = "int64" if tensor.dtype in ("bool", "int32", "uint8") else tensor.dtype
    return contiguous_result(call, sizes, Op.CUMULATIVE, dtype=dtype, device=tensor.device)


@operation("topk")
def topk(call: Call, tensor: TensorValue) -> Value:
    given = arguments_of(call)
    k, dim = given.size("k"), given.number("dim")
    layout = None
    if tensor.layout is not None and k is not None and dim is not None:
        layout = reductions.topk(tensor.layout, k, dim)
    values = as_result(call, layout, Op.TOPK, dtype=tensor.dtype, device=tensor.device, is_contiguous=True)
    indices = as_result(call, layout, Op.TOPK, dtype="int64", device=tensor.device, is_contiguous=True)
    if layout is None and k is not None and dim is not None:
        values.set_size(dim, k)
        indices.set_size(dim, k)
    return TupleValue((values, indices), ("values", "indices"))


@operation("sort")
def sort(call: Call, tensor: TensorValue) -> Value:
    return TupleValue(
        (copied(call, tensor, Op.SORT), copied(call, tensor, Op.SORT, "int64")), ("values", "indices")
    )


@operation("argsort", "flip", "fliplr", "flipud")
def reordered(call: Call, tensor: TensorValue) -> Value:
    if call.name.endswith("argsort"):
        return copied(call, tensor, Op.ARGSORT, "int64")
    return copied(call, tensor, Op.FLIP)


@operation("tril", "triu")
def triangle(call: Call, tensor: TensorValue) -> Value:
    sizes = None if tensor.layout is None else tensor.layout.sizes
    return contiguous_result(call, sizes, Op.TRIANGLE, dtype=tensor.dtype, device=tensor.device)
