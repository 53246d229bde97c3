"""What the interpreter saw happen: the checks turn events into diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import libcst as cst

from shapefix.interpreter.devices import Device
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject, Value
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import BatchSize
from shapefix.tensors.verdicts import ViewVerdict


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
class InPlaceWrite(Event):
    """A write into the memory of a tensor: `x += 1`, `x[mask] = 0`, `x.add_(1)`.

    layout is the tensor's at that moment, subject the expression that the code has for it. shared is the
    first dimension along which several elements that are written to are one in memory, None where there is
    none; refused says whether torch raises then, or lets the write be seen in all of them.
    """

    tensor: TensorValue
    layout: Layout | None
    subject: cst.CSTNode | None
    shared: int | None = None
    refused: bool = False


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
class Discarded(Event):
    """An expression statement whose value nobody uses: the call, its qualified function and its receiver.

    name is the variable that the chain of methods starts from, `y` of `y.permute(0, 2, 1).contiguous()`; None
    where it starts from something else. held is the tensor in that variable, leaf tells whether the code has
    made it one that gradients flow to, and no further.
    """

    call: cst.Call
    function: str
    receiver: Value
    name: str | None
    held: TensorValue | None
    leaf: bool


@dataclass(frozen=True, eq=False, slots=True)
class Viewed(Event):
    """`.view`, `.view_as` or `.reshape` of a tensor whose rank is known, and what torch says to it.

    layout is the tensor's at that moment; target holds the sizes asked for, the -1 already resolved, and
    stated counts those that the code states. function is the one being run; undecided says whether the call
    stands in a branch of it that may never be taken. free is True for `torch.reshape(x, …)`.
    """

    call: cst.CSTNode
    method: str
    tensor: TensorValue
    layout: Layout
    target: tuple[Size, ...]
    verdict: ViewVerdict
    result: TensorValue
    function: cst.CSTNode | None
    undecided: bool
    stated: int
    free: bool = False


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


@dataclass(frozen=True, eq=False, slots=True)
class OpRejectedForLastBatch(Event):
    """torch raises at this place for the last batch of a loader only, which is smaller than the others."""

    refused: OpRejected
    batch: BatchSize


@dataclass(frozen=True, eq=False, slots=True)
class Broadcast(Event):
    """Two tensors are compared of which one has one dimension more, of size 1, and is else of the same sizes.

    Each is repeated along a dimension of the other, which nobody means who compares predictions with targets.
    longer is the number of the operand with the dimension dim more. result is what comes out of it, and else
    the fields are those of Refused.
    """

    function: str
    layer: Value | None
    given: tuple[str, ...]
    operands: tuple[Operand, ...]
    longer: int
    dim: int
    result: TensorValue | None
    within: cst.CSTNode | None
    undecided: bool


@dataclass(frozen=True, eq=False, slots=True)
class DeviceMismatch(Event):
    """torch is handed tensors on two devices, or a layer one on another device than its weights.

    here is the number of the operand that is on the CPU, None for the weights; there likewise what is
    elsewhere. cpu and other are the two devices. tensors are the names that hold tensors for certain at this
    moment, by the function being run. The other fields are those of Refused.
    """

    function: str
    layer: Value | None
    given: tuple[str, ...]
    operands: tuple[Operand, ...]
    here: int | None
    there: int | None
    cpu: Device
    other: Device
    within: cst.CSTNode | None
    undecided: bool
    tensors: Mapping[cst.CSTNode, frozenset[str]]


@dataclass(frozen=True, eq=False, slots=True)
class ReducedToScalar(Event):
    """The sum or the mean of all elements of a tensor that elementwise operations came before."""

    tensor: TensorValue
