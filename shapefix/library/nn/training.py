"""Trained parameters of layers, as far as every use of them is visible."""

from __future__ import annotations

from collections.abc import Mapping

from shapefix.domains.gradients import Gradients, is_leaf
from shapefix.interpreter.calls import Call
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.facts import Fact
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    InstanceValue,
    LibraryObject,
    Value,
    facts_of,
)
from shapefix.library.nn.dtypes import WEIGHT_DTYPE_LAYERS
from shapefix.library.signatures import BoundArguments
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trained(Fact):
    """Module with trained parameters since its creating entry point."""

    entry_point: int


@dataclass(frozen=True, slots=True)
class Frozen(Trained):
    """Module without any trained parameters, frozen by the code at a place."""

    place: Place


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


def made_here(call: Call) -> Trained:
    """Fact about a module created by this call."""
    return Trained(call.ev.entry_point)


def set_trained(call: Call, module: InstanceValue | LibraryObject, trained: bool | None) -> None:
    """Record that the code froze or unfroze the parameters of a module."""
    here = call.ev.entry_point
    fact = Trained(here) if trained else Frozen(here, call.place) if trained is False else None
    call.ev.journal.write(module.facts, Trained, fact)


def is_trained(call: Call, module: Value | None) -> bool | None:
    """Check whether the parameters of a module are trained; None if the code may have frozen them."""
    known = facts_of(module).known(Trained)
    if known is None or isinstance(known, Frozen):
        return None if known is None or call.ev.state[Gradients].thawed else False
    is_valid = known.entry_point == call.ev.entry_point and not call.ev.state[Gradients].frozen
    return True if is_valid else None


def has_weights(name: str, fields: Mapping[str, Value]) -> bool:
    """Check whether a layer of this qualified name certainly has parameters."""
    kind = name.removeprefix("torch.nn.")
    switch = _SWITCHED.get(kind)
    return kind in _WEIGHTED if switch is None else BoundArguments(fields).flag(switch) is True


def has_trained_weights(ev: Evaluator, module: InstanceValue | LibraryObject) -> bool:
    """Check whether a module itself certainly has a trained parameter."""
    if isinstance(module, LibraryObject) and has_weights(module.kind, module.fields):
        known = module.facts.known(Trained)
        return known is not None and not isinstance(known, Frozen) and known.entry_point == ev.entry_point
    return any(isinstance(each, TensorValue) and is_leaf(ev, each) for each in module.fields.values())


def takes_part(call: Call, name: str, layer: Value) -> bool | None:
    """Check whether trained parameters take part in the result of a layer of this qualified name."""
    kind = name.removeprefix("torch.nn.")
    switch = _SWITCHED.get(kind)
    if switch is not None:
        fields = layer.fields if isinstance(layer, (InstanceValue, LibraryObject)) else {}
        has_weights = BoundArguments(fields).flag(switch)
        return is_trained(call, layer) if has_weights else has_weights
    return is_trained(call, layer) if kind in _WEIGHTED else False
