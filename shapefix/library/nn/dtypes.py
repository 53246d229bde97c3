"""The dtypes of layers: that of their weights, and what they refuse for it.

What a layer's weights are is only said where everything that happens to the layer can be seen: in the script
itself, or in the same run of a function that nobody called.
"""

from __future__ import annotations

from collections.abc import Mapping

from shapefix.domains.precision import Precision
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Unknown, Value, as_tensor
from shapefix.library.signatures import Given
from shapefix.library.tensors import default_dtype, dtype_of
from shapefix.tensors import refused_dtypes

DTYPE = "<dtype>"
"""The field of a layer that holds the dtype of its weights, with the run that knows it."""

_SAME = frozenset(
    "Linear LazyLinear Bilinear modules.linear.NonDynamicallyQuantizableLinear Conv1d Conv2d Conv3d "
    "ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d "
    "LazyConvTranspose2d LazyConvTranspose3d RNN LSTM GRU RNNCell LSTMCell GRUCell MultiheadAttention "
    "TransformerEncoderLayer PReLU".split()
)
"""Layers whose input has the dtype of their weights."""
_NORMS = {
    **dict.fromkeys("BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm".split(), "affine"),
    "LayerNorm": "elementwise_affine",
}
"""Layers that take halves as well, with the setting that tells whether they have weights."""
_FLOATING = frozenset(
    "RMSNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d GELU AdaptiveAvgPool1d AdaptiveAvgPool2d "
    "AdaptiveAvgPool3d Softmax LogSoftmax".split()
)
"""Layers that take any floating dtype, or may have no weights."""
_INDEXED = frozenset(("torch.nn.Embedding", "torch.nn.EmbeddingBag", "torch.nn.functional.embedding"))
_PRODUCTS = frozenset(
    f"torch.nn.functional.{name}"
    for name in "linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d".split()
)
_RESULTS = (_SAME | {"Embedding"}) - {"MultiheadAttention", "TransformerEncoderLayer"}


def of_weights(call: Call) -> Value:
    """What is known of the weights' dtype of a layer that is made here."""
    if call.arguments.open:
        return Unknown()
    given = call.arguments.keywords.get("dtype")
    is_default = given is None or (isinstance(given, Constant) and given.value is None)
    return converted(call, default_dtype(call) if is_default else dtype_of(given))


def converted(call: Call, dtype: str | None) -> Value:
    """The field of a layer whose weights are made of this dtype here."""
    return Unknown() if dtype is None else TupleValue((Constant(dtype), Constant(call.ev.entry_point)))


def _weights(call: Call, settings: Mapping[str, Value]) -> str | None:
    """The dtype of a layer's weights; None where it is not known."""
    field = settings.get(DTYPE)
    if not isinstance(field, TupleValue):
        return None
    dtype, root = (part.value if isinstance(part, Constant) else None for part in field.items)
    return dtype if root == call.ev.entry_point and isinstance(dtype, str) else None


def may_be_cast(call: Call) -> bool:
    """Whether autocast may be at work: there is no telling in a function that nobody called."""
    return bool(call.ev.state[Precision].casting or call.ev.entry_point)


def check_dtypes(call: Call, name: str, given: Given, settings: Mapping[str, Value]) -> None:
    """Raises WrongDtype where a layer or function refuses the dtype of its input."""
    kind = name.removeprefix("torch.nn.")
    if name in _INDEXED:
        refused_dtypes.one_of(_dtype(given, "input"), refused_dtypes.INDICES, 0)
    elif kind in _SAME:
        weights = None if name.startswith("torch.nn.Lazy") else _weights(call, settings)
        refused_dtypes.weighted(_first(given), weights, may_be_cast(call))
    elif kind in _NORMS:
        has_weights = Given(settings).flag(_NORMS[kind])
        weights = _weights(call, settings) if has_weights else None
        refused_dtypes.weighted(_first(given), weights, autocast=True)
    elif kind in _FLOATING:
        refused_dtypes.floating(_first(given))
    elif name in _PRODUCTS:
        refused_dtypes.product(_dtype(given, "input"), _dtype(given, "weight"), may_be_cast(call))


def note_dtype(call: Call, name: str, made: Value, settings: Mapping[str, Value]) -> None:
    """Give a layer's result the dtype of its weights: it has no other where autocast has no part in it.

    A normalisation keeps that of its input, which need not be that of its weights.
    """
    kind = name.removeprefix("torch.nn.")
    if may_be_cast(call) or (kind not in _RESULTS and kind not in _NORMS):
        return
    weights = _weights(call, settings)
    if kind in _NORMS:
        tensor = as_tensor(settings.get("input"))
        weights = None if tensor is None else tensor.dtype
    for part in made.items if isinstance(made, TupleValue) else (made,):
        if isinstance(part, TensorValue) and part.dtype is None:
            part.dtype = weights


def _first(given: Given) -> str | None:
    """The dtype of the first argument."""
    return _dtype(given, next(iter(given.values), ""))


def _dtype(given: Given, name: str) -> str | None:
    tensor = as_tensor(given.values.get(name))
    return None if tensor is None else tensor.dtype
