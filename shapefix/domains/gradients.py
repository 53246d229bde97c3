"""Gradients: recording by torch, and tensors with an autograd graph."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from typing import ClassVar

import libcst as cst

from shapefix.interpreter import hooks
from shapefix.interpreter.classes import is_closed
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Event
from shapefix.interpreter.facts import Fact
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.interpreter.values import (
    FALSE,
    TRUE,
    Constant,
    InstanceValue,
    LibraryObject,
    Unknown,
    Value,
    facts_of,
)
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.ops import Op

NO_GRAD = frozenset({"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad"})
ENABLE_GRAD, SET_GRAD_ENABLED = "torch.enable_grad", "torch.set_grad_enabled"

_COMPUTING = frozenset(
    {
        Op.VIEW,
        Op.RESHAPE,
        Op.SLICE,
        Op.SELECT,
        Op.INDEX,
        Op.UNSQUEEZE,
        Op.TRANSPOSE,
        Op.CLONE,
        Op.MATMUL,
        Op.CAT,
        Op.STACK,
        Op.ADD,
        Op.SUB,
        Op.MUL,
        Op.DIV,
    }
)
"""Operations with a new tensor as result for all arguments; a conversion or a move may return the tensor."""

NONE_PROVED: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class RecordedBefore(Fact):
    """Whether gradients were recorded before a `set_grad_enabled` object was created, None if unknown."""

    recording: bool | None


@dataclass(eq=False, slots=True)
class Gradients:
    """State of gradients at this moment of a run."""

    recording: bool | None = True
    """Whether torch records gradients, None if unknown."""
    stopped: Place | None = None
    """Creation of the context that stopped the recording, None if unknown."""
    frozen: bool = False
    """Whether the code may have frozen parameters, unknown which."""
    thawed: bool = False
    """Whether the code may have unfrozen parameters, unknown which."""
    retained: bool = False
    """Whether the code has called `retain_grad()`, or registered a hook, of any tensor."""
    leaves: dict[TensorValue, Value] = field(default_factory=dict)
    """Tensors with `requires_grad` set by the code, TRUE for leaves of the graph. Written to the journal."""


@dataclass(frozen=True, eq=False, slots=True)
class LeafWritten(Event):
    """A write into a leaf of the graph while gradients are recorded; torch raises here.

    subject is the expression of the written tensor, the leaf or a view of it. is_differentiated is whether a
    written value carries a graph itself.
    """

    subject: cst.CSTNode | None
    is_differentiated: bool


@dataclass(frozen=True, eq=False, slots=True)
class NumpyOfGradient(Event):
    """A conversion to NumPy of a tensor with a gradient, or of a list of such tensors; torch raises here.

    function is the method or the function of NumPy, subject the expression of the tensor or the list.
    is_on_gpu is whether the tensor may be on a GPU.
    """

    function: str
    subject: cst.BaseExpression
    tensor: TensorValue
    is_list: bool
    is_on_gpu: bool


@dataclass(frozen=True, eq=False, slots=True)
class NoGradientRead(Event):
    """A read of `.grad` of a tensor without one: torch returns None.

    is_computed is whether the tensor has a graph, but is not a leaf of it; otherwise it requires no gradient.
    is_replaced is whether an earlier pass of a loop has put it in place of the leaf.
    """

    is_of_values: ClassVar[bool] = True

    tensor: TensorValue
    is_computed: bool
    is_replaced: bool = False


@hooks.enter_context
def _enter(ev: Evaluator, value: Value) -> hooks.Exit | None:
    state = ev.state[Gradients]
    created = facts_of(value).known(RecordedBefore)
    before = state.recording if created is None else created.recording
    stopped = state.stopped
    state.recording = records_gradients(value, before)
    if state.recording is False and before is not False:
        state.stopped = value.place if isinstance(value, LibraryObject) else None

    def leave() -> None:
        state.recording, state.stopped = before, stopped

    return leave


@hooks.begin_entry_point
def _begin_entry_point(ev: Evaluator) -> hooks.Exit:
    """Assume that the unknown caller may run the function under `no_grad`."""
    state = ev.state[Gradients]
    before, state.recording = state.recording, None

    def leave() -> None:
        state.recording = before

    return leave


_FREEZING = ("requires_grad_", "freeze")
"""Prefixes of methods that freeze parameters."""


@hooks.read_unknown
def _note_frozen(ev: Evaluator, owner: Value, name: str) -> None:
    if isinstance(owner, Unknown) and name.startswith(_FREEZING):
        ev.state[Gradients].frozen = True


@hooks.set_attribute
def _set_requires_grad(ev: Evaluator, owner: Value, name: str, value: Value, node: cst.CSTNode) -> None:
    if name != "requires_grad":
        return
    ev.state[Gradients].frozen = True
    if isinstance(owner, TensorValue):
        known = value.value if isinstance(value, Constant) else None
        require_grad(ev, owner, known if isinstance(known, bool) else None)


def require_grad(ev: Evaluator, tensor: TensorValue, asked: bool | None) -> None:
    """Set `requires_grad` of a tensor, None for an unknown value.

    A tensor that did not require a gradient before is a leaf from then on: gradients flow to it, and no
    further.
    """
    leaves = ev.state[Gradients].leaves
    leaves.setdefault(tensor, FALSE)
    if asked is not True or requires_grad(tensor) is not True:
        leaf = TRUE if asked and requires_grad(tensor) is False else Unknown()
        ev.journal.write(leaves, tensor, leaf)
    ev.journal.write(tensor, "graph", asked)


def mark_leaf(ev: Evaluator, tensor: TensorValue) -> None:
    """Record a new tensor as a leaf, such as a parameter."""
    leaves = ev.state[Gradients].leaves
    leaves.setdefault(tensor, FALSE)
    ev.journal.write(leaves, tensor, TRUE)


def is_leaf(ev: Evaluator, tensor: TensorValue) -> bool:
    """Check whether tensor was certainly made a leaf: gradients flow to it, and no further."""
    return ev.state[Gradients].leaves.get(tensor) is TRUE


def is_computed(ev: Evaluator, tensor: TensorValue) -> bool:
    """Check for a tensor certainly computed from one with a gradient; a move may return the tensor itself."""
    if not tensor.certain or not requires_grad(tensor) or not tensor.sources:
        return False
    if ev.state[Gradients].leaves.get(tensor, FALSE) is not FALSE:
        # The code has set `requires_grad`, and perhaps made it a leaf.
        return False
    # `x.clone().requires_grad_(True)` of a picture is a leaf: only a source with a gradient makes a graph.
    if not any(requires_grad(source) for source in tensor.sources):
        return False
    source, made = tensor.sources[0], tensor.origin
    if made is None or made is source.origin:
        return False
    is_converted = None not in (tensor.dtype, source.dtype) and tensor.dtype != source.dtype
    return made.op in _COMPUTING or (made.op in (Op.TO, Op.TO_DTYPE) and is_converted)


def carries_graph(tensor: TensorValue, proved: Collection[int] = NONE_PROVED) -> bool | None:
    """Check whether gradients flow back through tensor; None if unknown.

    proved are the ids of tensors of which a later `backward()` proves that they do.
    """
    known = requires_grad(tensor)
    if known is not None:
        return known
    return True if any(id(each) in proved for each in lineage(tensor)) else None


def lineage(tensor: TensorValue) -> list[TensorValue]:
    """The tensor, and all tensors on the paths of its gradients."""
    found = [tensor]
    seen = {id(tensor)}
    for each in found:
        for source in each.sources:
            if id(source) not in seen and requires_grad(source) is not False:
                seen.add(id(source))
                found.append(source)
    return found


def depends_on(result: TensorValue, source: TensorValue) -> bool:
    """Check for a gradient flowing from a result back to a tensor."""
    return any(each is source for each in lineage(result))


def records_gradients(value: Value, before: bool | None) -> bool | None:
    """Check whether torch records gradients in the body of `with value:`; before is the outer state."""
    name = getattr(value, "kind", None) or getattr(value, "name", None)
    if name == ENABLE_GRAD:
        return True
    if name == SET_GRAD_ENABLED or name in NO_GRAD:
        mode = getattr(value, "arguments", {}).get("mode")
        if mode is None:
            return None if name == SET_GRAD_ENABLED else False
        asked = mode.value if isinstance(mode, Constant) else None
        if name == SET_GRAD_ENABLED:
            return bool(asked) if isinstance(mode, Constant) else None
        return False if asked is True else before if asked is False else None
    if isinstance(value, InstanceValue) and not is_closed(value.cls):
        return None
    return None if isinstance(value, Unknown) else before
