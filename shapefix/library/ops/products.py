"""Matrix products: contiguous results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Unknown, Value, as_tensor
from shapefix.library.nn.dtypes import may_be_cast
from shapefix.library.registry import function, operation, tensor_function
from shapefix.library.rejections import by_position, reject, trace
from shapefix.library.signatures import arguments_of
from shapefix.library.tensors import as_result, assume_rank
from shapefix.tensors import dtype_checks, products
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, contiguous, unknown_strides
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size


def _common_dtype(call: Call, left: TensorValue, right: TensorValue) -> str | None:
    """Dtype of a product; None if autocast may lower its precision."""
    if left.dtype != right.dtype or (may_be_cast(call) and dtype_checks.is_cast(left.dtype)):
        return None
    return left.dtype


def product_of(call: Call, left: TensorValue, right: TensorValue) -> TensorValue:
    """Result of left @ right: contiguous, in one dtype."""
    dtype_checks.product(left.dtype, right.dtype, may_be_cast(call))
    dtype = _common_dtype(call, left, right)
    if left.layout is None or right.layout is None:
        return as_result(call, None, Op.MATMUL, dtype=dtype, device=left.device, is_contiguous=True)
    layout = products.matmul(left.layout, right.layout)
    return as_result(call, layout, Op.MATMUL, dtype=dtype, device=left.device)


@operation("matmul")
def matmul(call: Call, tensor: TensorValue) -> Value:
    other = arguments_of(call).tensor("other")
    return TensorValue() if other is None else product_of(call, tensor, other)


_EXACT = {"mm": ("mat2", (2, 2)), "bmm": ("mat2", (3, 3)), "mv": ("vec", (2, 1)), "dot": ("tensor", (1, 1))}
"""The name of the other operand, and the ranks of both."""


@operation(*_EXACT)
def exact_product(call: Call, tensor: TensorValue) -> Value:
    """Register products of tensors of fixed ranks."""
    name, ranks = _EXACT[call.name.rpartition(".")[2]]
    other = arguments_of(call).tensor(name)
    return TensorValue() if other is None else _exact(call, tensor, other, ranks)


@tensor_function("torch.spmm", "torch.sparse.mm")
def sparse_product(call: Call, tensor: TensorValue) -> Value:
    other = arguments_of(call).tensor("dense" if call.name == "torch.sparse.mm" else "mat2")
    return TensorValue() if other is None else _exact(call, tensor, other, (2, 2))


def _exact(
    call: Call, left: TensorValue, right: TensorValue, ranks: tuple[int, int], first: int = 0
) -> TensorValue:
    """Product of tensors of these ranks; first is the number of the left operand."""
    dtype_checks.product(left.dtype, right.dtype, may_be_cast(call), first)
    dtype = _common_dtype(call, left, right)
    sides = (left, right)
    if all(side.layout is None for side in sides):
        return as_result(call, None, Op.MATMUL, dtype=dtype, device=left.device, is_contiguous=True)
    one, two = (
        assume_rank(call, side, rank) if side.layout is None else side.layout
        for side, rank in zip(sides, ranks, strict=True)
    )
    layout = products.exact_product(one, two, ranks, first)
    return as_result(call, layout, Op.MATMUL, dtype=dtype, device=left.device)


@function("operator.matmul")
def matmul_operator(call: Call) -> Value:
    operands = [as_tensor(value) for value in call.arguments.positional]
    left, right = operands if len(operands) == 2 else (None, None)
    if left is None or right is None:
        return TensorValue()
    try:
        return trace(call, product_of(call, left, right), left)
    except ShapeError as error:
        reject(call, error, by_position(call))
        return TensorValue()


_ADDED = {
    "addmm": (("mat1", "mat2"), (2, 2)),
    "baddbmm": (("batch1", "batch2"), (3, 3)),
    "addbmm": (("batch1", "batch2"), (3, 3)),
    "addmv": (("mat", "vec"), (2, 1)),
}


@operation(*_ADDED)
def added_product(call: Call, tensor: TensorValue) -> Value:
    """Product added to the tensor; addbmm sums it over the batch first."""
    name = call.name.rpartition(".")[2]
    names, ranks = _ADDED[name]
    left, right = map(arguments_of(call).tensor, names)
    if left is None or right is None:
        return TensorValue()
    made = _exact(call, left, right, ranks, first=1)
    if made.layout is None:
        return made
    if name == "addbmm":
        made.layout = contiguous(made.layout.sizes[1:])
    if tensor.layout is not None:
        products.added_product(tensor.layout, made.layout)
    return as_result(call, made.layout, Op.ADDMM, dtype=made.dtype, device=made.device)


@operation("outer", "ger")
def outer(call: Call, tensor: TensorValue) -> Value:
    other = arguments_of(call).tensor("vec2")
    if tensor.layout is None or other is None or other.layout is None:
        return TensorValue()
    layout = products.outer(tensor.layout, other.layout)
    return as_result(call, layout, Op.MATMUL, dtype=tensor.dtype, device=tensor.device)


@function("torch.einsum")
def einsum(call: Call) -> Value:
    given = arguments_of(call)
    text, operands = given.text("equation"), given.value("operands")
    if text is None or call.arguments.open:
        return TensorValue()
    parts = elements(operands) or (operands,)
    return _contracted(call, parts, lambda layouts: products.einsum(text, layouts))


@function("einops.einsum")
def named_einsum(call: Call) -> Value:
    """einsum with the pattern last and axis names of any length."""
    *operands, pattern = call.arguments.positional or [Unknown()]
    if not isinstance(pattern, Constant) or not isinstance(pattern.value, str) or call.arguments.open:
        return TensorValue()
    inputs, arrow, output = pattern.value.partition("->")
    terms = [tuple(term.split()) for term in inputs.split(",")]
    if not arrow or "(" in pattern.value:
        return TensorValue()
    wanted = tuple(output.split())
    return _contracted(call, operands, lambda layouts: products.contraction(terms, wanted, layouts))


def _contracted(
    call: Call, operands: Sequence[Value], compute: Callable[[Sequence[Layout]], Layout]
) -> TensorValue:
    """Sum of products over these operands, its layout computed from theirs."""
    tensors = [tensor for tensor in map(as_tensor, operands) if tensor is not None]
    for tensor in tensors:
        tensor.certain = True
    layouts = [tensor.layout for tensor in tensors if tensor.layout is not None]
    if not tensors or len(layouts) < len(operands):
        return TensorValue()
    try:
        layout = compute(layouts)
    except ShapeError as error:
        reject(call, error, by_position(call))
        return TensorValue()
    first = tensors[0]
    dtype = first.dtype if all(tensor.dtype == first.dtype for tensor in tensors) else None
    return trace(call, as_result(call, layout, Op.EINSUM, dtype=dtype, device=first.device), first)


@function("torch.nn.functional.scaled_dot_product_attention")
def attention(call: Call) -> Value:
    given = arguments_of(call)
    query, key, value = map(given.tensor, ("query", "key", "value"))
    if query is None or key is None or value is None:
        return TensorValue()
    if query.layout is None:
        return as_result(call, None, Op.ATTENTION, dtype=query.dtype, device=query.device)
    if key.layout is None or value.layout is None:
        last = value.known_size(-1) or Size.symbol("size(-1)")
        layout = unknown_strides((*query.layout.sizes[:-1], last))
        return as_result(call, layout, Op.ATTENTION, dtype=query.dtype, device=query.device)
    mask = as_tensor(given.value("attn_mask"))
    grouped = given.flag("enable_gqa") is not False
    try:
        layout = products.scaled_dot_product_attention(
            query.layout, key.layout, value.layout, None if mask is None else mask.layout, grouped
        )
    except ShapeError as error:
        operands = {"query": query, "key": key, "value": value}
        reject(call, error, operands if mask is None else {**operands, "attn_mask": mask})
        return TensorValue()
    return trace(call, as_result(call, layout, Op.ATTENTION, dtype=query.dtype, device=query.device), query)
