"""Activations and dropout: elementwise, except for normalizing and halving ones."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value
from shapefix.library.nn.layers import functional, in_place, layer, result
from shapefix.library.ops.elementwise import result_of
from shapefix.library.ops.reductions import normalized_along
from shapefix.library.ops.value_range import outside_of
from shapefix.library.rejections import reject
from shapefix.library.signatures import BoundArguments
from shapefix.library.tensors import contiguous_result, copied_or_same
from shapefix.tensors import indexing
from shapefix.tensors.errors import IndexOutOfRange
from shapefix.tensors.layout import contiguous, is_contiguous, unknown_strides, wrap_dim
from shapefix.tensors.memory_format import preserve_format
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import floor_divide


@layer(
    "GELU",
    "Hardshrink",
    "Softshrink",
    "PReLU",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Softplus",
    "ELU",
    "CELU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Mish",
    "Hardswish",
    "Hardsigmoid",
    "Hardtanh",
    "LeakyReLU",
    "Threshold",
)
@functional(
    "relu",
    "relu6",
    "selu",
    "silu",
    "mish",
    "hardswish",
    "hardsigmoid",
    "elu",
    "celu",
    "leaky_relu",
    "hardtanh",
    "threshold",
)
def activation(call: Call, given: BoundArguments) -> Value:
    tensor = given.tensor("input")
    if tensor is None:
        return TensorValue()
    if "inplace" not in given.values:
        return result_of(call, [tensor], Op.ACTIVATION)
    return in_place(call, tensor, given, lambda: result_of(call, [tensor], Op.ACTIVATION))


@layer("Sigmoid")
def sigmoid(call: Call, given: BoundArguments) -> Value:
    tensor = given.tensor("input")
    return TensorValue() if tensor is None else result_of(call, [tensor], Op.SIGMOID)


@layer("RReLU")
@functional("rrelu")
@layer("LogSigmoid")
@functional("logsigmoid")
def copied_by_backend(call: Call, given: BoundArguments) -> Value:
    """Elementwise operation; whether a permuted order is kept depends on the backend."""
    tensor = given.tensor("input")
    layout = None if tensor is None or tensor.layout is None else tensor.layout
    if layout is not None:
        layout = preserve_format(layout)
        if is_contiguous(layout) is not True:
            layout = unknown_strides(layout.sizes)
    return result(call, tensor, layout, Op.ACTIVATION, dtype=None if tensor is None else tensor.dtype)


@layer("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")
@functional("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
@functional("dropout", namespaces=("torch",))
def dropout(call: Call, given: BoundArguments) -> Value:
    """Apply dropout; in evaluation, and for p = 0, return the tensor itself."""
    tensor = given.tensor("input")
    if tensor is None:
        return TensorValue()
    if given.flag("inplace"):
        return in_place(call, tensor, given, lambda: tensor)
    return copied_or_same(call, tensor, Op.DROPOUT)


def _softmax(op: Op, *kinds: str) -> None:
    """Register layers for normalizing exponentials along a dimension."""

    @layer(*kinds)
    def forward(call: Call, given: BoundArguments) -> Value:
        made = _contiguous(call, given.tensor("input"), op)
        return normalized_along(made, given)


_softmax(Op.SOFTMAX, "Softmax")
_softmax(Op.LOG_SOFTMAX, "LogSoftmax")
_softmax(Op.SOFTMIN, "Softmin")


@layer("Softmax2d")
def softmax_of_channels(call: Call, given: BoundArguments) -> Value:
    return _contiguous(call, given.tensor("input"), Op.SOFTMAX)


@functional("gumbel_softmax")
def gumbel_softmax(call: Call, given: BoundArguments) -> Value:
    return _contiguous(call, given.tensor("logits"), Op.GUMBEL_SOFTMAX)


def _contiguous(call: Call, tensor: TensorValue | None, op: Op) -> TensorValue:
    if tensor is None:
        return TensorValue()
    sizes = None if tensor.layout is None else tensor.layout.sizes
    return contiguous_result(call, sizes, op, dtype=tensor.dtype, device=tensor.device)


@layer("GLU")
@functional("glu")
def glu(call: Call, given: BoundArguments) -> Value:
    tensor, dim = given.tensor("input"), given.number("dim")
    if tensor is None or tensor.layout is None or not tensor.layout.rank or dim is None:
        return result(call, tensor, None, Op.GLU)
    at = wrap_dim(dim, tensor.layout.rank)
    half = floor_divide(tensor.layout.sizes[at], 2)
    layout = preserve_format(indexing.narrow(tensor.layout, at, Size.of(0), half))
    return result(call, tensor, layout, Op.GLU, dtype=tensor.dtype)


@functional("normalize")
def normalize(call: Call, given: BoundArguments) -> Value:
    tensor = given.tensor("input")
    if tensor is None:
        return TensorValue()
    made = result_of(call, [tensor], Op.NORMALIZE)
    made.dtype = None
    return made


@functional("one_hot")
def one_hot(call: Call, given: BoundArguments) -> Value:
    tensor = given.tensor("input")
    layout = None
    size = given.size("num_classes")
    if tensor is not None and tensor.layout is not None:
        layout = contiguous((*tensor.layout.sizes, _classes(size)))
    last = None if size is None or size.value == -1 else size
    outside = outside_of(tensor, last) if tensor is not None and last is not None else None
    if tensor is not None and last is not None and outside is not None:
        message = "Class values must be smaller than num_classes."
        reject(call, IndexOutOfRange(message, outside, last, -1), {"input": tensor})
    return result(call, tensor, layout, Op.ONE_HOT, dtype="int64", is_contiguous=True, last=last)


def _classes(size: Size | None) -> Size:
    return Size.symbol("classes") if size is None or size.value == -1 else size
