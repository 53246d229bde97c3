"""Trained parameters of layers, as far as every use of them is visible."""

from __future__ import annotations

from collections.abc import Mapping

from shapefix.domains.gradients import Gradients
from shapefix.interpreter.calls import Call
from shapefix.interpreter.values import FALSE, Constant, Unknown, Value
from shapefix.library.nn.dtypes import WEIGHT_DTYPE_LAYERS
from shapefix.library.signatures import BoundArguments

TRAINED = "<trained>"
"""Field of a module for the run of the code that created it with trained parameters."""

_WEIGHTED = WEIGHT_DTYPE_LAYERS | {
    "AdaptiveLogSoftmaxWithLoss",
    "Embedding",
    "EmbeddingBag",
    "Transformer",
    "TransformerDecoderLayer",
}
_SWITCHED = {
    **dict.fromkeys(
        (
            "BatchNorm1d",
            "BatchNorm2d",
            "BatchNorm3d",
            "LazyBatchNorm1d",
            "LazyBatchNorm2d",
            "LazyBatchNorm3d",
            "SyncBatchNorm",
            "GroupNorm",
            "InstanceNorm1d",
            "InstanceNorm2d",
            "InstanceNorm3d",
            "LazyInstanceNorm1d",
            "LazyInstanceNorm2d",
            "LazyInstanceNorm3d",
        ),
        "affine",
    ),
    **dict.fromkeys(("LayerNorm", "RMSNorm"), "elementwise_affine"),
}
"""Layers with parameters if this setting is true."""


def made_here(call: Call) -> Value:
    """Field of a module created by this call."""
    return Constant(call.ev.entry_point)


def set_trained(call: Call, fields: dict[str, Value], trained: bool | None) -> None:
    """Record that the code froze or unfroze the parameters of a module."""
    value = made_here(call) if trained else FALSE if trained is False else Unknown()
    call.ev.journal.write(fields, TRAINED, value)


def is_trained(call: Call, fields: Mapping[str, Value]) -> bool | None:
    """Check whether the parameters of a module are trained; None if the code may have frozen them."""
    field = fields.get(TRAINED)
    if field is FALSE:
        return False
    known = (
        isinstance(field, Constant)
        and field.value == call.ev.entry_point
        and not call.ev.state[Gradients].frozen
    )
    return True if known else None


def has_weights(name: str, fields: Mapping[str, Value]) -> bool:
    """Check whether a layer of this qualified name certainly has parameters."""
    kind = name.removeprefix("torch.nn.")
    switch = _SWITCHED.get(kind)
    return kind in _WEIGHTED if switch is None else BoundArguments(fields).flag(switch) is True


def takes_part(call: Call, name: str, fields: Mapping[str, Value]) -> bool | None:
    """Check whether trained parameters take part in the result of a layer of this qualified name."""
    kind = name.removeprefix("torch.nn.")
    switch = _SWITCHED.get(kind)
    if switch is not None:
        has_weights = BoundArguments(fields).flag(switch)
        return is_trained(call, fields) if has_weights else has_weights
    return is_trained(call, fields) if kind in _WEIGHTED else False
