"""Losses: predictions and targets."""

from __future__ import annotations

from collections.abc import Mapping

from shapefix.interpreter.events import Event
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Value
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class LossComputed(Event):
    """Call of a loss of torch.

    function is its qualified name: the class of a layer, or the function; layer is the layer. given are the
    arguments of the call and the settings of the layer, by the names of their parameters.
    """

    function: str
    layer: Value | None
    given: Mapping[str, Value]


@dataclass(frozen=True, eq=False, slots=True)
class ClassesRead(Event):
    """Probabilities taken for those of classes along a dimension, for each sample of a batch.

    function is that of a distribution over the last dimension, or `gather`, which picks one class a sample.
    dim counts from 0.
    """

    function: str
    scores: TensorValue
    dim: int
