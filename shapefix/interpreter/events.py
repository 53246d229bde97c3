"""What the interpreter saw happen: the checks turn events into diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import libcst as cst

from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject, Value
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout


@dataclass(frozen=True, eq=False, slots=True)
class Event:
    """Something that happened at a place, reached through these calls, outermost first.

    What is known of a tensor may change later on, and is forgotten when a branch is undone: an event keeps
    the layout that it is about.
    """

    place: Place
    calls: tuple[Place, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Revealed(Event):
    """`reveal(x)`: the user asks what is known."""

    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class TensorUsedAsIndex(Event):
    """A tensor stands where Python needs an int: it is asked for its one integer.

    layout is the tensor's at that moment, subject the code of the tensor, and role what it is there for: the
    "index" of a list or text, the "bound" of a slice, the argument of a "range".
    """

    tensor: TensorValue
    layout: Layout
    subject: cst.CSTNode
    role: str


@dataclass(frozen=True, eq=False, slots=True)
class AttributeSet(Event):
    """`x.name = value` where x is an object of a library: `tokenizer.pad_token = tokenizer.eos_token`."""

    owner: LibraryObject
    name: str
    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class Operand:
    """A tensor that an operation was handed: the name of its parameter, and its layout at that moment."""

    name: str
    tensor: TensorValue
    layout: Layout | None


@dataclass(frozen=True, eq=False, slots=True)
class OpRejected(Event):
    """torch raises at this place: the sizes of the operands do not fit, whatever the symbols in them are.

    function is the qualified name of the operation, or of the layer's class; layer is the object that was
    called, None for a function. settings are its arguments by name, where the operation has a signature, and
    given the names of its parameters in their order. error says why. within is the function being run;
    undecided tells whether the operands reached this place through a branch that may never be taken.
    """

    function: str
    layer: Value | None
    settings: Mapping[str, Value]
    given: tuple[str, ...]
    operands: tuple[Operand, ...]
    error: ShapeError
    within: cst.CSTNode | None
    undecided: bool
