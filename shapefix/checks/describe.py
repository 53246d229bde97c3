"""What `reveal(x)` says of a value."""

from __future__ import annotations

from shapefix.checks.run import Run
from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Integer, Unknown, Value
from shapefix.tensors.layout import has_unknown_strides, is_contiguous

SHORT = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "complex64": "c64",
    "complex128": "c128",
}


def describe(value: Value, run: Run) -> str:
    """A value in one line: `f32[B, T - 1, V] strides (T*V, V, 1)`, the strides where it is not contiguous."""
    if isinstance(value, TensorValue):
        return _tensor(value, run)
    if isinstance(value, Unknown) and value.tensor is not None and value.tensor.layout is not None:
        return _tensor(value.tensor, run)
    if isinstance(value, Integer):
        return run.text(value.size)
    if isinstance(value, Constant):
        return repr(value.value)
    if isinstance(value, TupleValue):
        inner = ", ".join(describe(item, run) for item in value.items)
        return f"({inner},)" if len(value.items) == 1 else f"({inner})"
    return "unknown"


def _tensor(tensor: TensorValue, run: Run) -> str:
    dtype = SHORT.get(tensor.dtype, tensor.dtype) if tensor.dtype else "?"
    if tensor.layout is None:
        return f"{dtype}[...]" + (" contiguous" if tensor.contiguous else "")
    text = f"{dtype}[{', '.join(run.text(size) for size in tensor.layout.sizes)}]"
    if has_unknown_strides(tensor.layout):
        return f"{text} strides unknown"
    if is_contiguous(tensor.layout):
        return text
    return f"{text} strides {run.shape(tensor.layout.strides)}"
