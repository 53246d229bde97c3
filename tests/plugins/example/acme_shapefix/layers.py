"""The sizes of ACME's layers."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.values import Unknown, Value, as_tensor
from shapefix.library.registry import function
from shapefix.library.tensors import contiguous_result
from shapefix.tensors.ops import Op


@function("acme.pool_rows")
def pool_rows(call: Call) -> Value:
    tensor = as_tensor(call.value(0, "x"))
    if tensor is None or tensor.layout is None:
        return Unknown()
    return contiguous_result(call, tensor.layout.sizes[1:], Op.REDUCTION, dtype=tensor.dtype)
