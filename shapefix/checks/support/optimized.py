"""Layers with weights, and optimizers with known parameters."""

from __future__ import annotations

from collections.abc import Iterable

from shapefix.domains.training import OptimizerCreated, OptimizerStepped, Owners
from shapefix.interpreter.values import LibraryObject, Value, facts_of

_WEIGHTED = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear",
        "Bilinear",
        "Conv1d",
        "Conv2d",
        "Conv3d",
        "ConvTranspose1d",
        "ConvTranspose2d",
        "ConvTranspose3d",
        "Embedding",
        "EmbeddingBag",
        "LSTM",
        "GRU",
        "RNN",
        "LSTMCell",
        "GRUCell",
        "RNNCell",
        "MultiheadAttention",
    )
)


def has_weights(module: Value) -> bool:
    """Whether the code creates this layer, and it has weights."""
    return isinstance(module, LibraryObject) and module.kind in _WEIGHTED and module.place is not None


def are_all_known(steps: Iterable[OptimizerStepped], built: Iterable[OptimizerCreated]) -> bool:
    """Whether the parameters of all optimizers are known."""
    optimizers = [*(each.optimizer for each in steps), *(each.optimizer for each in built)]
    owners = [facts_of(each).known(Owners) for each in optimizers]
    return all(each is not None and each.modules for each in owners)
