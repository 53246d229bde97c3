"""Activations and dropout: elementwise, but for those that normalise or halve a dimension."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value
from shapefix.library.nn.layers import functional, in_place, layer, result
from shapefix.library.ops.elementwise import result_of
from shapefix.library.signatures import Given
from shapefix.library.tensors import contiguous_result, copied_or_same
from shapefix.tensors import indexing
from shapefix.tensors.layout import contiguous, is_contiguous, unknown_strides, wrap_dim
from shapefix.tensors.memory_format import preserve_format
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import floor_divide


@layer("GELU", takes="approximate='none'")
@layer("Hardshrink", "Softshrink", takes="lambd=0.5")
@layer("PReLU", takes="num_parameters=1, init=0.25")
@layer("Sigmoid", "Softsign", "Tanh", "Tanhshrink")
@layer("Softplus", takes="beta=1.0, threshold=20.0")
@layer("ELU", "CELU", takes="alpha=1.0, inplace=False")
@layer("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardswish", "Hardsigmoid", takes="inplace=False")
@layer("Hardtanh", takes="min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None")
@layer("LeakyReLU", takes="negative_slope=0.01, inplace=False")
@layer("Threshold", takes="threshold, value, inplace=False")
@functional("relu", "relu6", "selu", "silu", "mish", "hardswish", "hardsigmoid", takes="input, inplace=False")
@functional("elu", "celu", takes="input, alpha=1.0, inplace=False")
@functional("leaky_relu", takes="input, negative_slope=0.01, inplace=False")
@functional("hardtanh", takes="input, min_val=-1.0, max_val=1.0, inplace=False")
@functional("threshold", takes="input, threshold, value, inplace=False")
def activation(call: Call, given: Given) -> Value:
    tensor = given.tensor("input")
    if tensor is None:
        return TensorValue()
    if "inplace" not in given.values:
        return result_of(call, [tensor], "activated")
    return in_place(call, tensor, given, lambda: result_of(call, [tensor], "activated"))


@layer("RReLU", takes="lower=0.125, upper=0.3333333333333333, inplace=False")
@functional("rrelu", takes="input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False")
@layer("LogSigmoid")
@functional("logsigmoid", takes="input")
def copied_by_backend(call: Call, given: Given) -> Value:
    """Elementwise, but it depends on the backend whether a permuted order is kept."""
    tensor = given.tensor("input")
    layout = None if tensor is None or tensor.layout is None else tensor.layout
    if layout is not None:
        layout = preserve_format(layout)
        if is_contiguous(layout) is not True:
            layout = unknown_strides(layout.sizes)
    return result(call, tensor, layout, "activated", dtype=None if tensor is None else tensor.dtype)


@layer(
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "AlphaDropout",
    "FeatureAlphaDropout",
    takes="p=0.5, inplace=False",
)
@functional(
    "dropout", "dropout1d", "dropout2d", "dropout3d", takes="input, p=0.5, training=True, inplace=False"
)
@functional("alpha_dropout", "feature_alpha_dropout", takes="input, p=0.5, training=False, inplace=False")
@functional("dropout", takes="input, p=0.5, train=True", namespaces=("torch",))
def dropout(call: Call, given: Given) -> Value:
    """In evaluation, and where p is 0, the tensor itself."""
    tensor = given.tensor("input")
    if tensor is None:
        return TensorValue()
    if given.flag("inplace"):
        return in_place(call, tensor, given, lambda: tensor)
    return copied_or_same(call, tensor, "dropped out")


@layer("Softmax", "LogSoftmax", "Softmin", takes="dim=None")
@layer("Softmax2d")
@functional("gumbel_softmax", takes="logits, tau=1, hard=False, eps=1e-10, dim=-1")
def softmax(call: Call, given: Given) -> Value:
    tensor = given.tensor("logits" if "logits" in given.values else "input")
    if tensor is None:
        return TensorValue()
    sizes = None if tensor.layout is None else tensor.layout.sizes
    return contiguous_result(call, sizes, "normalised", dtype=tensor.dtype, device=tensor.device)


@layer("GLU", takes="dim=-1")
@functional("glu", takes="input, dim=-1")
def glu(call: Call, given: Given) -> Value:
    tensor, dim = given.tensor("input"), given.number("dim")
    if tensor is None or tensor.layout is None or dim is None:
        return result(call, tensor, None, "gated")
    at = wrap_dim(dim, tensor.layout.rank)
    half = floor_divide(tensor.layout.sizes[at], 2)
    layout = preserve_format(indexing.narrow(tensor.layout, at, Size.of(0), half))
    return result(call, tensor, layout, "gated", dtype=tensor.dtype)


@functional("normalize", takes="input, p=2.0, dim=1, eps=1e-12, out=None")
def normalize(call: Call, given: Given) -> Value:
    tensor = given.tensor("input")
    if tensor is None:
        return TensorValue()
    made = result_of(call, [tensor], "normalised")
    made.dtype = None
    return made


@functional("one_hot", takes="tensor, num_classes=-1")
def one_hot(call: Call, given: Given) -> Value:
    tensor = given.tensor("tensor")
    layout = None
    size = given.size("num_classes")
    if tensor is not None and tensor.layout is not None:
        layout = contiguous((*tensor.layout.sizes, _classes(size)))
    last = None if size is None or size.value == -1 else size
    return result(call, tensor, layout, "encoded", dtype="int64", is_contiguous=True, last=last)


def _classes(size: Size | None) -> Size:
    return Size.symbol("classes") if size is None or size.value == -1 else size
