"""Norms, diagonals and decompositions."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value
from shapefix.library.registry import operation, tensor_function
from shapefix.library.signatures import arguments_of
from shapefix.library.tensors import as_result, contiguous_result
from shapefix.tensors import indexing, reductions
from shapefix.tensors.layout import Layout, contiguous, unknown_strides
from shapefix.tensors.ops import Op


@tensor_function("torch.linalg.norm", "torch.linalg.vector_norm")
def norm(call: Call, tensor: TensorValue) -> Value:
    """Result of norm(x, ord, dim, keepdim): over all dimensions if none is named."""
    given = arguments_of(call)
    dims, keepdim, whole = given.numbers("dim"), given.flag("keepdim"), given.is_none("dim")
    layout: Layout | None = None
    if whole and keepdim is False and not call.arguments.open:
        layout = Layout((), ())
    elif tensor.layout is not None and keepdim is not None and (whole or dims is not None):
        layout = reductions.reduce(tensor.layout, dims, keepdim)
    return as_result(call, layout, Op.REDUCTION, dtype=tensor.dtype, device=tensor.device, is_contiguous=True)


@operation("inverse")
@tensor_function("torch.linalg.inv")
def inverse(call: Call, tensor: TensorValue) -> Value:
    """Inverse: LAPACK returns columns first, other backends do not."""
    layout = None if tensor.layout is None else unknown_strides(tensor.layout.sizes)
    return as_result(call, layout, Op.INVERSE, dtype=tensor.dtype, device=tensor.device)


@operation("trace")
@tensor_function("torch.linalg.det")
def number_of_matrix(call: Call, tensor: TensorValue) -> Value:
    sizes = None if tensor.layout is None else tensor.layout.sizes[:-2]
    return contiguous_result(call, sizes, Op.REDUCTION, dtype=tensor.dtype, device=tensor.device)


@operation("diag")
def diag(call: Call, tensor: TensorValue) -> Value:
    """Diagonal of a matrix, or matrix with this diagonal: a copy either way."""
    offset = arguments_of(call).number("diagonal")
    layout: Layout | None = None
    if tensor.layout is not None and offset is not None:
        if tensor.layout.rank == 1:
            size = tensor.layout.sizes[0] + abs(offset)
            layout = contiguous((size, size))
        elif tensor.layout.rank == 2:
            layout = contiguous(indexing.diagonal(tensor.layout, offset, 0, 1).sizes)
    return as_result(call, layout, Op.DIAG, dtype=tensor.dtype, device=tensor.device)
