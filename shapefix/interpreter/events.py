"""What the interpreter saw happen: the checks turn events into diagnostics."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import TensorValue, Value
from shapefix.tensors.polynomials import Size
from shapefix.tensors.verdicts import Verdict


@dataclass(frozen=True, eq=False, slots=True)
class Event:
    """Something that happened at a place, reached through these calls, outermost first."""

    place: Place
    calls: tuple[Place, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Revealed(Event):
    """`reveal(x)`: the user asks what is known."""

    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class InPlaceWrite(Event):
    """A write into the memory of a tensor: `x += 1`, `x[mask] = 0`, `x.add_(1)`."""

    tensor: TensorValue
    operation: str


@dataclass(frozen=True, eq=False, slots=True)
class Discarded(Event):
    """An expression statement whose value nobody uses: the call, its qualified function and its receiver."""

    call: cst.Call
    function: str
    receiver: Value
    result: Value


@dataclass(frozen=True, eq=False, slots=True)
class Viewed(Event):
    """`.view`, `.view_as` or `.reshape` of a tensor whose rank is known, and what torch says to it.

    target holds the sizes asked for, the -1 already resolved.
    """

    call: cst.CSTNode
    method: str
    tensor: TensorValue
    target: tuple[Size, ...]
    verdict: Verdict
    result: TensorValue
