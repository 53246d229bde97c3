"""Contradictions between the declared sizes of a function and those of its calls and its body."""

from __future__ import annotations

from shapefix.interpreter.events import Event
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class DeclarationContradicted(Event):
    """An argument or the result of a function has other sizes than its declaration says.

    name is the qualified name of the function, declared the notation of the value. parameter is that of the
    argument, "" for the result, and tensor its value.
    """

    name: str
    parameter: str
    declared: str
    tensor: TensorValue
