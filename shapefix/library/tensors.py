"""Helpers of library functions for reading arguments and creating tensors."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from shapefix.domains.devices import (
    DeviceName,
    DeviceValue,
    by_default,
    device_of,
    is_named_as_device,
    placed,
)
from shapefix.domains.precision import Precision
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import Shape, elements
from shapefix.interpreter.modules import dotted_name
from shapefix.interpreter.refinement import note_assumed
from shapefix.interpreter.tensor_values import Device, LayoutStep, TensorValue
from shapefix.interpreter.values import (
    Constant,
    Integer,
    LibraryObject,
    Number,
    Reference,
    Unknown,
    Value,
    as_size,
)
from shapefix.tensors.layout import Layout, contiguous, unknown_strides
from shapefix.tensors.memory_format import preserve_format
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import SizeOf, UnknownSize

DTYPES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
}
NAMES_OF_DTYPES = frozenset(
    {
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "bool",
        "complex64",
        "complex128",
    }
)


def as_view(call: Call, tensor: TensorValue, layout: Layout | None, op: Op) -> TensorValue:
    """Tensor in the storage of another, seen through another layout."""
    return TensorValue(
        layout,
        dtype=tensor.dtype,
        device=tensor.device,
        storage=tensor.storage,
        origin=LayoutStep(call.place, op, layout, tensor.origin, call.ev.function),
        views=tensor.views,
        certain=tensor.certain,
    )


def alias_of(tensor: TensorValue) -> TensorValue:
    """Another tensor with the same memory and layout."""
    again = TensorValue(
        tensor.layout,
        contiguous=tensor.contiguous,
        dtype=tensor.dtype,
        device=tensor.device,
        storage=tensor.storage,
        origin=tensor.origin,
        views=tensor.views,
        certain=tensor.certain,
        row=tensor.row,
    )
    again.extremes = tensor.extremes
    again.copy_sizes(tensor)
    return again


def as_result(
    call: Call,
    layout: Layout | None,
    op: Op,
    *,
    dtype: str | None = None,
    device: Device | None = None,
    before: LayoutStep | None = None,
    is_contiguous: bool = False,
) -> TensorValue:
    """New tensor; before is the layout history of the operand with the same layout."""
    return TensorValue(
        layout,
        dtype=dtype,
        device=device,
        origin=LayoutStep(call.place, op, layout, before, call.ev.function),
        contiguous=is_contiguous and layout is None,
    )


def contiguous_result(
    call: Call,
    sizes: Sequence[Size] | None,
    op: Op,
    *,
    dtype: str | None = None,
    device: Device | None = None,
) -> TensorValue:
    """New contiguous tensor of these sizes, or of unknown rank."""
    layout = None if sizes is None else contiguous(sizes)
    return as_result(call, layout, op, dtype=dtype, device=device, is_contiguous=True)


def copied(call: Call, tensor: TensorValue, op: Op, dtype: str | None = None) -> TensorValue:
    """Copy in torch's memory format preserve_format."""
    layout = None if tensor.layout is None else preserve_format(tensor.layout)
    result = as_result(
        call,
        layout,
        op,
        dtype=dtype or tensor.dtype,
        device=tensor.device,
        before=tensor.origin,
        is_contiguous=tensor.contiguous,
    )
    result.copy_sizes(tensor)
    return result


def copied_or_same(
    call: Call, tensor: TensorValue, op: Op, dtype: str | None = None, same_if: str = ""
) -> TensorValue:
    """Copy or the tensor itself, depending on unknown facts.

    same_if are the facts that make it the tensor itself, in words, as far as they are worth a condition.
    """
    layout, origin = tensor.layout, tensor.origin
    if layout is not None and preserve_format(layout) != layout:
        layout = unknown_strides(layout.sizes)
    assumed = origin.layout if layout is None and origin is not None else None
    if assumed is not None and preserve_format(assumed) != assumed:
        # A copy of a slice of unknown rank has no gaps.
        origin = LayoutStep(call.place, op, assumed if same_if else None, origin, call.ev.function)
        origin.condition = same_if
    result = TensorValue(
        layout,
        dtype=dtype or tensor.dtype,
        device=None,
        origin=origin,
        contiguous=tensor.contiguous,
    )
    result.copy_sizes(tensor)
    return result


def size_list(value: Value | None) -> list[Size] | None:
    """Sizes in a tuple, list or torch.Size; None if their number is unknown."""
    if isinstance(value, Shape):
        return None if value.tensor.layout is None else list(value.tensor.layout.sizes)
    items = elements(value)
    if items is None:
        return None
    sizes = []
    for item in items:
        size = as_size(item)
        if size is None:
            return None
        sizes.append(size)
    return sizes


def dtype_of(value: Value | None) -> str | None:
    """Dtype named by `torch.float16` (or `float`)."""
    if isinstance(value, Reference):
        name = value.name.rpartition(".")[2]
        if value.name.startswith("torch."):
            name = DTYPES.get(name, name)
        else:
            name = {"builtins.float": "float64", "builtins.int": "int64", "builtins.bool": "bool"}.get(
                value.name, ""
            )
        return name if name in NAMES_OF_DTYPES else None
    return None


def is_no_dtype(value: Value) -> bool:
    """Check that an argument of `.to` certainly names no dtype; device names count."""
    if isinstance(value, Unknown):
        return is_named_as_device(value)
    return isinstance(value, (Constant, DeviceName, DeviceValue, Integer, LibraryObject))


def default_dtype(call: Call) -> str | None:
    """Default dtype of floats; None if a file in the program may have changed it."""
    ev = call.ev
    if any(frame.module.mentions("set_default_") for frame in ev.frames):
        return None
    return ev.state[Precision].default_dtype


def device_asked(call: Call) -> Device | None:
    """Device of a new tensor or module created here: the CPU, unless the code names another one.

    None if it may be any device.
    """
    if call.arguments.open or "out" in call.arguments.keywords:
        return None
    given = call.arguments.keywords.get("device")
    if given is None or (isinstance(given, Constant) and given.value is None):
        return by_default(call.ev, call.place)
    return placed(call.ev, device_of(given), call.place)


def is_number(value: Value | None) -> bool:
    """Check for a Python number."""
    return isinstance(value, (Integer, Number)) or (
        isinstance(value, Constant) and isinstance(value.value, (int, float, complex))
    )


def _receiver(call: cst.Call) -> cst.BaseExpression | None:
    return call.func.value if isinstance(call.func, cst.Attribute) else None


def new_size(call: Call, dim: int) -> Size:
    """Create the unknown size of a dimension of the called tensor: `labels.size(1)`."""
    node = call.place.node
    subject: cst.CSTNode | None = None
    if isinstance(node, (cst.Attribute, cst.Subscript)):
        subject = node.value
    elif isinstance(node, cst.Call):
        is_method = call.name.startswith("torch.Tensor.")
        subject = _receiver(node) if is_method else node.args[0].value if node.args else None
    if subject is None:
        return Size.from_symbol(UnknownSize(f"size({dim})"))
    name = dotted_name(subject)
    if name:
        return Size.from_symbol(UnknownSize(f"{name}.size({dim})"))
    return Size.from_symbol(SizeOf(f"size({dim})", _short_code(call, subject)))


_LONGEST_NAME = 40


def _short_code(call: Call, node: cst.CSTNode) -> str:
    """Code of a tensor without a name; a long call is shown without its arguments."""
    code = call.place.module.code(node)
    if len(code) > _LONGEST_NAME:
        function = dotted_name(node.func) if isinstance(node, cst.Call) else ""
        return f"{function}(…)" if function else "(…)"
    if isinstance(node, (cst.Call, cst.Subscript, cst.Attribute)) or code.startswith("("):
        return code
    return f"({code})"


def assume_rank(call: Call, tensor: TensorValue, rank: int, *, certain: bool = True) -> Layout:
    """Layout of a tensor used as one of this rank; an unknown rank is known from now on.

    certain is False if the operation takes other ranks, too.
    """
    if tensor.layout is not None:
        return tensor.layout
    known = tensor.known_sizes(rank)
    sizes = [size or tensor.size(dim, new_size(call, dim)) for dim, size in enumerate(known)]
    layout = contiguous(sizes) if tensor.contiguous else unknown_strides(sizes)
    call.ev.journal.write(tensor, "layout", layout)
    if not certain:
        note_assumed(call.ev, sizes, known)
    return layout
