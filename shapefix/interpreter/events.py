"""Events of a run, turned into diagnostics by the checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import libcst as cst

from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject, Value
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout


@dataclass(frozen=True, eq=False, slots=True)
class Event:
    """Event at a place, reached through these calls, outermost first.

    Facts of a tensor may change later, and are forgotten when a branch is undone: an event keeps
    the layout of its moment. is_of_values is whether it depends on the values of this way to its place, so
    that it may not happen for others.
    """

    is_of_values: ClassVar[bool] = False

    place: Place
    calls: tuple[Place, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Revealed(Event):
    """`reveal(x)`: a request for the facts of a value."""

    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class TensorUsedAsIndex(Event):
    """A tensor in place of a Python int, converted to its only integer.

    layout is the tensor's at that moment, subject the code of the tensor. role is its use: the "index" of a
    list or text, the "bound" of a slice, the argument of a "range".
    """

    is_of_values: ClassVar[bool] = True

    tensor: TensorValue
    layout: Layout
    subject: cst.CSTNode
    role: str


@dataclass(frozen=True, eq=False, slots=True)
class AttributeSet(Event):
    """`x.name = value` on an object x of a library: `tokenizer.pad_token = tokenizer.eos_token`."""

    owner: LibraryObject
    name: str
    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class Operand:
    """Tensor operand: the name of its parameter, and its layout at that moment."""

    name: str
    tensor: TensorValue
    layout: Layout | None


@dataclass(frozen=True, eq=False, slots=True)
class OperationEvent(Event):
    """Event of one operation on tensors.

    function is the qualified name of the operation, or of the layer's class; layer is the called object, None
    for a function. given are the names of its parameters, in order. within is the running function; undecided
    is whether the operands reached this place through a branch that may never be taken.
    """

    is_of_values: ClassVar[bool] = True

    function: str
    layer: Value | None
    given: tuple[str, ...]
    operands: tuple[Operand, ...]
    within: cst.CSTNode | None
    undecided: bool


@dataclass(frozen=True, eq=False, slots=True)
class OpRejected(OperationEvent):
    """Rejection by torch: the operands' sizes do not fit for any values of their symbols.

    settings are the arguments by name if the operation has a signature; error is the reason.
    """

    settings: Mapping[str, Value]
    error: ShapeError


@dataclass(frozen=True, eq=False, slots=True)
class OperationCalled(Event):
    """Call of a function, method or layer of a library.

    function is its qualified name; receiver is the object of a method, or the layer. Emitted only to a run
    with a listener: see `Evaluator.listening`.
    """

    function: str
    receiver: Value | None
    positional: tuple[Value, ...]
    keywords: Mapping[str, Value]
    result: Value


@dataclass(frozen=True, eq=False, slots=True)
class WrongCountUnpacked(Event):
    """Tuple or list with a tensor or an object of torch, unpacked into another number of names.

    The place is that of the names; want is their number. within and undecided are those of `OperationEvent`.
    """

    is_of_values: ClassVar[bool] = True

    items: tuple[Value, ...]
    want: int
    within: cst.CSTNode | None
    undecided: bool


@dataclass(frozen=True, eq=False, slots=True)
class ArgumentsRefused(Event):
    """Call of a module's forward, or of a method of torch, with too few or too many positional arguments.

    function is the name of the method, owner its class. wanted are the names of the parameters without a
    default, most is the largest number of arguments, given that of this call. defined is the definition in
    the project, None for one of torch. undecided is whether the call is in a branch that may never be taken.
    """

    is_of_values: ClassVar[bool] = True

    owner: str
    function: str
    wanted: tuple[str, ...]
    most: float
    given: int
    defined: Place | None
    undecided: bool


@dataclass(frozen=True, eq=False, slots=True)
class KeywordRefused(Event):
    """Call of a constructor of torch with an unknown keyword.

    owner is the class, argument that of the call, accepted are the keywords of the constructor, and undecided
    is whether the call is in a branch that may never be taken.
    """

    is_of_values: ClassVar[bool] = True

    owner: str
    argument: cst.Arg
    accepted: tuple[str, ...]
    undecided: bool
