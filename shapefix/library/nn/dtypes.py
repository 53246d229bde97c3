"""Dtypes of layers: dtypes of their weights, and rejected input dtypes.

The dtype of a layer's weights is only known where every use of the layer is visible: in the script
itself, or in the same run of a function without known callers.
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from shapefix.domains.devices import method_of_module
from shapefix.domains.gradients import Gradients
from shapefix.domains.precision import Precision
from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.facts import Fact
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    Constant,
    InstanceValue,
    LibraryObject,
    Value,
    as_tensor,
    facts_of,
)
from shapefix.library.signatures import BoundArguments
from shapefix.library.tensors import alias_of, default_dtype, dtype_of
from shapefix.light_dataclasses import dataclass
from shapefix.tensors import dtype_checks
from shapefix.tensors.dtypes import is_complex, is_floating


@dataclass(frozen=True, slots=True)
class WeightDtype(Fact):
    """Dtype of a layer's weights, and the entry point with this knowledge."""

    dtype: str
    entry_point: int


@dataclass(frozen=True, slots=True)
class Registered(Fact):
    """Names of a module's registered parameters and buffers; values assigned to them later are, too."""

    names: frozenset[object]


WEIGHT_DTYPE_LAYERS = frozenset(
    {
        "Linear",
        "LazyLinear",
        "Bilinear",
        "modules.linear.NonDynamicallyQuantizableLinear",
        "Conv1d",
        "Conv2d",
        "Conv3d",
        "ConvTranspose1d",
        "ConvTranspose2d",
        "ConvTranspose3d",
        "LazyConv1d",
        "LazyConv2d",
        "LazyConv3d",
        "LazyConvTranspose1d",
        "LazyConvTranspose2d",
        "LazyConvTranspose3d",
        "RNN",
        "LSTM",
        "GRU",
        "RNNCell",
        "LSTMCell",
        "GRUCell",
        "MultiheadAttention",
        "TransformerEncoderLayer",
        "PReLU",
    }
)
"""Layers with inputs of the dtype of their weights."""
_NORMS = {
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm"), "affine"),
    "LayerNorm": "elementwise_affine",
}
"""Layers that also accept half precision, with the setting for their weights."""
_FLOATING = frozenset(
    {
        "RMSNorm",
        "InstanceNorm1d",
        "InstanceNorm2d",
        "InstanceNorm3d",
        "GELU",
        "AdaptiveAvgPool1d",
        "AdaptiveAvgPool2d",
        "AdaptiveAvgPool3d",
        "Softmax",
        "LogSoftmax",
    }
)
"""Layers for any floating dtype, or perhaps without weights."""
_INDEXED = frozenset(("torch.nn.Embedding", "torch.nn.EmbeddingBag", "torch.nn.functional.embedding"))
_PRODUCTS = frozenset(
    f"torch.nn.functional.{name}"
    for name in (
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
    )
)
_RESULTS = (WEIGHT_DTYPE_LAYERS | {"Embedding"}) - {"MultiheadAttention", "TransformerEncoderLayer"}


def of_weights(call: Call) -> WeightDtype | None:
    """Known dtype of the weights of a layer created here."""
    if call.arguments.open:
        return None
    given = call.arguments.keywords.get("dtype")
    is_default = given is None or (isinstance(given, Constant) and given.value is None)
    return converted(call, default_dtype(call) if is_default else dtype_of(given))


def converted(call: Call, dtype: str | None) -> WeightDtype | None:
    """Fact about a layer with weights converted to this dtype here; None for an unknown dtype."""
    return None if dtype is None else WeightDtype(dtype, call.ev.entry_point)


def note_registered(call: Call, module: InstanceValue | LibraryObject, name: object) -> None:
    """Record that an attribute of a module is a parameter or a buffer."""
    call.ev.journal.write(module.facts, Registered, Registered(_registered(module) | {name}))


@hooks.set_attribute
def _place_buffer(ev: Evaluator, owner: Value, name: str, value: Value, node: cst.CSTNode) -> None:
    """Forget the device of a tensor assigned to a buffer in the constructor: it moves with the module."""
    if not isinstance(value, TensorValue) or not isinstance(owner, (InstanceValue, LibraryObject)):
        return
    method = method_of_module(ev)
    if name in _registered(owner) and method is not None and method.name.value == "__init__":
        ev.journal.write(value, "device", None)


def _registered(module: InstanceValue | LibraryObject) -> frozenset[object]:
    known = module.facts.known(Registered)
    return frozenset() if known is None else known.names


def convert_tensors(
    ev: Evaluator, module: InstanceValue | LibraryObject, dtype: str | None, whole: bool
) -> None:
    """Convert the parameters and buffers of a module; None for an unknown dtype.

    Integer and bool tensors are only converted if whole is True.
    """
    names, fields = _registered(module), module.fields
    for name, value in list(fields.items()):
        after: Value = value
        if isinstance(value, TensorValue):
            after = _in_dtype(ev, value, dtype, whole) if value.own or name in names else value
        elif name == "_modules":
            after = _children(ev, value, dtype, whole)
        if after is not value:
            ev.journal.write(fields, name, after)


def _converted(ev: Evaluator, value: Value, dtype: str | None, whole: bool) -> Value:
    return _in_dtype(ev, value, dtype, whole) if isinstance(value, TensorValue) and value.own else value


def _children(ev: Evaluator, value: Value, dtype: str | None, whole: bool) -> Value:
    """Convert the parameters of a ParameterList or ParameterDict to another dtype."""
    if isinstance(value, ListValue) and value.items is not None:
        items = tuple(_converted(ev, item, dtype, whole) for item in value.items)
        changed = any(one is not other for one, other in zip(items, value.items, strict=True))
        return ListValue(items) if changed else value
    if isinstance(value, DictValue):
        entries = {key: _converted(ev, item, dtype, whole) for key, item in value.fields.items()}
        changed = any(entries[key] is not item for key, item in value.fields.items())
        return DictValue(entries, value.closed, value.kind) if changed else value
    return value


def _in_dtype(ev: Evaluator, tensor: TensorValue, dtype: str | None, whole: bool) -> TensorValue:
    known = tensor.dtype
    if known == dtype and known is not None:
        return tensor
    if known is not None and not whole and not (is_floating(known) or is_complex(known)):
        return tensor
    again = alias_of(tensor)
    again.own, again.device, again.graph = tensor.own, tensor.device, tensor.graph
    leaves = ev.state[Gradients].leaves
    if tensor in leaves:
        leaves[again] = leaves[tensor]
    # Other references to a parameter see the conversion, those to a buffer do not.
    tensor.dtype = None
    # It may be of an integer or complex dtype, and keep it.
    is_real = whole or (known is not None and is_floating(known))
    again.dtype = dtype if is_real else None
    return again


def _weights(call: Call, layer: Value | None) -> str | None:
    """Dtype of a layer's weights; None if unknown."""
    known = facts_of(layer).known(WeightDtype)
    return known.dtype if known is not None and known.entry_point == call.ev.entry_point else None


def may_be_cast(call: Call) -> bool:
    """Check whether autocast may be active: unknown in a function without known callers."""
    return bool(call.ev.state[Precision].casting or call.ev.entry_point)


def check_dtypes(
    call: Call, name: str, given: BoundArguments, settings: Mapping[str, Value], layer: Value | None
) -> None:
    """Check the dtype of an input. Raises WrongDtype if a layer or function rejects it."""
    kind = name.removeprefix("torch.nn.")
    if name in _INDEXED:
        dtype_checks.one_of(_dtype(given, "input"), dtype_checks.INDICES, 0)
    elif kind in WEIGHT_DTYPE_LAYERS:
        weights = None if name.startswith("torch.nn.Lazy") else _weights(call, layer)
        dtype_checks.weighted(_first(given), weights, may_be_cast(call))
    elif kind in _NORMS:
        has_weights = BoundArguments(settings).flag(_NORMS[kind])
        weights = _weights(call, layer) if has_weights else None
        dtype_checks.weighted(_first(given), weights, autocast=True)
    elif kind in _FLOATING:
        dtype_checks.floating(_first(given))
    elif name in _PRODUCTS:
        dtype_checks.product(_dtype(given, "input"), _dtype(given, "weight"), may_be_cast(call))


def note_dtype(
    call: Call, name: str, made: Value, settings: Mapping[str, Value], layer: Value | None
) -> None:
    """Give a layer's result the dtype of its weights, unless autocast may change it.

    A normalization keeps the dtype of its input, which may differ from that of its weights.
    """
    kind = name.removeprefix("torch.nn.")
    if may_be_cast(call) or (kind not in _RESULTS and kind not in _NORMS):
        return
    weights = _weights(call, layer)
    if kind in _NORMS:
        tensor = as_tensor(settings.get("input"))
        weights = None if tensor is None else tensor.dtype
    for part in made.items if isinstance(made, TupleValue) else (made,):
        if isinstance(part, TensorValue) and part.dtype is None:
            part.dtype = weights


def _first(given: BoundArguments) -> str | None:
    """Dtype of the first argument."""
    return _dtype(given, next(iter(given.values), ""))


def _dtype(given: BoundArguments, name: str) -> str | None:
    tensor = as_tensor(given.values.get(name))
    return None if tensor is None else tensor.dtype
