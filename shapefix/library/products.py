"""Matrix products: contiguous results."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import elements
from shapefix.interpreter.tensor_values import TensorValue, as_tensor
from shapefix.interpreter.values import Constant, Value
from shapefix.library.refusals import by_position, refuse, trace
from shapefix.library.registry import function, operation
from shapefix.library.tensors import as_result
from shapefix.tensors import results
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import contiguous, unknown_strides
from shapefix.tensors.polynomials import Size


def product_of(call: Call, left: TensorValue, right: TensorValue) -> TensorValue:
    """left @ right: contiguous, in one dtype."""
    dtype = left.dtype if left.dtype == right.dtype else None
    if left.layout is None or right.layout is None:
        return as_result(call, None, "multiplied", dtype=dtype, device=left.device, is_contiguous=True)
    layout = results.matmul(left.layout, right.layout)
    return as_result(call, layout, "multiplied", dtype=dtype, device=left.device)


@operation("matmul", "mm", "bmm", "mv", "dot")
def matmul(call: Call, tensor: TensorValue) -> Value:
    other = as_tensor(call.value(0, "other") or call.value(0, "mat2"))
    return TensorValue() if other is None else product_of(call, tensor, other)


@function("operator.matmul")
def matmul_operator(call: Call) -> Value:
    left, right = (as_tensor(value) for value in call.arguments.positional)
    if left is None or right is None:
        return TensorValue()
    try:
        return trace(call, product_of(call, left, right), left)
    except ShapeError as error:
        refuse(call, error, by_position(call))
        return TensorValue()


@operation("addmm", "baddbmm", "addbmm", "addmv")
def added_product(call: Call, tensor: TensorValue) -> Value:
    left, right = as_tensor(call.value(0, "mat1")), as_tensor(call.value(1, "mat2"))
    if left is None or right is None or call.name.endswith(".addbmm"):
        return TensorValue()
    return product_of(call, left, right)


@operation("outer", "ger")
def outer(call: Call, tensor: TensorValue) -> Value:
    other = as_tensor(call.value(0, "vec2"))
    if tensor.layout is None or other is None or other.layout is None:
        return TensorValue()
    sizes = (*tensor.layout.sizes, *other.layout.sizes)
    return as_result(call, contiguous(sizes), "multiplied", dtype=tensor.dtype, device=tensor.device)


@function("torch.einsum")
def einsum(call: Call) -> Value:
    equation = call.value(0)
    given = call.arguments.positional[1:]
    operands = elements(given[0]) if len(given) == 1 and elements(given[0]) is not None else tuple(given)
    tensors = [as_tensor(value) for value in operands or ()]
    layouts = [tensor.layout for tensor in tensors if tensor is not None and tensor.layout is not None]
    if (
        not isinstance(equation, Constant)
        or not isinstance(equation.value, str)
        or len(layouts) < len(tensors)
    ):
        return TensorValue()
    try:
        layout = results.einsum(equation.value, layouts)
    except ShapeError as error:
        refuse(call, error, by_position(call))
        return TensorValue()
    first = tensors[0]
    dtype = (
        first.dtype
        if first is not None and all(t is not None and t.dtype == first.dtype for t in tensors)
        else None
    )
    return as_result(call, layout, "multiplied", dtype=dtype)


@function("torch.nn.functional.scaled_dot_product_attention")
def attention(call: Call) -> Value:
    query, key, value = (as_tensor(call.value(i, name)) for i, name in enumerate(("query", "key", "value")))
    if query is None or key is None or value is None:
        return TensorValue()
    if query.layout is None:
        return as_result(call, None, "attended", dtype=query.dtype, device=query.device)
    if key.layout is None or value.layout is None:
        last = value.settled(-1) or Size.symbol("size(-1)")
        layout = unknown_strides((*query.layout.sizes[:-1], last))
        return as_result(call, layout, "attended", dtype=query.dtype, device=query.device)
    try:
        layout = results.scaled_dot_product_attention(query.layout, key.layout, value.layout)
    except ShapeError as error:
        refuse(call, error, {"query": query, "key": key, "value": value})
        return TensorValue()
    return as_result(call, layout, "attended", dtype=query.dtype, device=query.device)
