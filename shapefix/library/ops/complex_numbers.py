"""Complex tensors, stored as two floats per element, and views of their parts."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value, as_tensor
from shapefix.library.ops.elementwise import result_of
from shapefix.library.registry import tensor_function, tensor_method
from shapefix.library.signatures import arguments_of
from shapefix.library.tensors import as_view
from shapefix.tensors.layout import Layout, contiguous, is_contiguous, unknown_strides
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import ONE, Size

COMPLEX_OF = {"float16": "complex32", "float32": "complex64", "float64": "complex128"}
FLOAT_OF = {whole: part for part, whole in COMPLEX_OF.items()}


@tensor_function("torch.view_as_real")
def view_as_real(call: Call, tensor: TensorValue) -> Value:
    layout = None
    if tensor.layout is not None:
        strides = (*(stride * 2 for stride in tensor.layout.strides), ONE)
        layout = Layout((*tensor.layout.sizes, Size.of(2)), strides)
    seen = as_view(call, tensor, layout, Op.VIEW_AS_REAL)
    seen.dtype = FLOAT_OF.get(tensor.dtype or "")
    return seen


@tensor_function("torch.view_as_complex")
def view_as_complex(call: Call, tensor: TensorValue) -> Value:
    layout = None
    if tensor.layout is not None and tensor.layout.rank:
        sizes = tensor.layout.sizes[:-1]
        layout = contiguous(sizes) if is_contiguous(tensor.layout) else unknown_strides(sizes)
    seen = as_view(call, tensor, layout, Op.VIEW_AS_COMPLEX)
    seen.dtype = COMPLEX_OF.get(tensor.dtype or "")
    return seen


@tensor_function("torch.polar", "torch.complex")
def composed(call: Call, tensor: TensorValue) -> Value:
    other = as_tensor(arguments_of(call).value("angle" if call.name.endswith("polar") else "imag"))
    made = result_of(call, [tensor, other], Op.POLAR)
    made.dtype = COMPLEX_OF.get(tensor.dtype or "")
    return made


@tensor_method("@real", "@imag")
def part(call: Call, tensor: TensorValue) -> Value:
    """View of every second float in memory; the tensor itself if it is real."""
    dtype = FLOAT_OF.get(tensor.dtype or "")
    layout = tensor.layout
    if layout is not None and dtype is not None:
        layout = Layout(layout.sizes, tuple(stride * 2 for stride in layout.strides))
    elif layout is not None and tensor.dtype is None:
        layout = unknown_strides(layout.sizes)
    seen = as_view(call, tensor, layout, Op.REAL_OR_IMAG)
    seen.dtype = dtype
    return seen
