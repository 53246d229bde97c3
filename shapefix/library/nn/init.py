"""torch.nn.init: fill a tensor in place and return it."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.values import Unknown, Value, as_tensor
from shapefix.library.ops.in_place import emit_write, subject_of
from shapefix.library.registry import expanded_dim, function

_SET = ("constant_", "ones_", "zeros_", "eye_", "dirac_")
_DRAWS = (
    "normal_",
    "uniform_",
    "trunc_normal_",
    "xavier_normal_",
    "xavier_uniform_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "orthogonal_",
    "sparse_",
)


@function(*(f"torch.nn.init.{name}" for name in (*_SET, *_DRAWS)))
def fill(call: Call) -> Value:
    value = call.value(0, "tensor")
    tensor = as_tensor(value)
    if tensor is None or value is None:
        return value or Unknown()
    refused = call.name.rpartition(".")[2] in _DRAWS
    emit_write(
        call, tensor, subject_of(call), expanded_dim(tensor.layout) if refused else None, refused=refused
    )
    return value
