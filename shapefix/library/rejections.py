"""Events for operations rejected by torch, and the sources of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import libcst as cst

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import elements
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Operand, OpRejected
from shapefix.interpreter.refinement import depends_on_test, needs_assumed_rank
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Unknown, Value
from shapefix.library.ops.value_range import kept
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout
from shapefix.tensors.options import options_of
from shapefix.tensors.tensor_iterator import mismatch_unless_one

Made = TypeVar("Made", bound=Value)


def reject(
    call: Call,
    error: ShapeError,
    operands: Mapping[str, Value],
    *,
    function: str = "",
    layer: Value | None = None,
    settings: Mapping[str, Value] | None = None,
) -> None:
    """Report that torch raises here, for these values by the names of their parameters.

    function is the one that raises, if it is not the call itself; layer and settings are as in OpRejected.
    """
    event = refusal(call, error, operands, function=function, layer=layer, settings=settings)
    if event is not None:
        call.ev.emit(event)


def refuse_beyond_one(call: Call, operands: Mapping[str, Value], layouts: Sequence[Layout]) -> None:
    """Report that torch raises unless a size is 1, and so expandable; operands as in reject.

    layouts are those of the operands, in their order.
    """
    first = layouts[0].sizes if layouts else ()
    if any(layout.sizes != first for layout in layouts):
        error = mismatch_unless_one(*(layout.sizes for layout in layouts))
        if error is not None and error.conditions:
            reject(call, error, operands)


def refusal(
    call: Call,
    error: ShapeError,
    operands: Mapping[str, Value],
    *,
    function: str = "",
    layer: Value | None = None,
    settings: Mapping[str, Value] | None = None,
) -> OpRejected | None:
    """Event of torch raising here; None if it may not raise."""
    found = operands_in(operands)
    if not all(operand.tensor.certain for operand in found):
        # Arrays of numpy follow other rules.
        return None
    if needs_assumed_rank(call.ev, [operand.tensor for operand in found], error):
        return None
    if depends_on_test(call.ev, error):
        return None
    if _needs_defaults(error) and any(frame.undecided for frame in call.ev.frames):
        # Runs that take another branch may also pass another number.
        return None
    return OpRejected(
        call.place,
        call.ev.calls,
        function or call.name,
        layer,
        tuple(operands),
        tuple(found),
        call.ev.function,
        any(may_not_reach(call.ev, operand.tensor) for operand in found) or _asks_for_layer(call),
        settings or {},
        error,
    )


def may_not_reach(ev: Evaluator, tensor: TensorValue) -> bool:
    """Check whether branches with unknown conditions may keep a tensor from this place."""
    return ev.may_not_reach(object() if tensor.origin is None else tensor.origin.function)


def _asks_for_layer(call: Call) -> bool:
    """Check for an open branch with a test of the called layer: `isinstance(self.loss, …)`."""
    node = call.place.node
    if not call.ev.frame.tests or not isinstance(node, cst.Call):
        return False
    code = call.place.module.code
    return any(code(node.func) in code(test) for test in call.ev.frame.tests)


def _needs_defaults(error: ShapeError) -> bool:
    """Check whether torch raises only for the defaults of command-line options."""
    return bool(options_of(error))


def operands_in(values: Mapping[str, Value], most: int | None = None) -> list[Operand]:
    """Tensors among values, including those in lists and tuples, in order; at most so many of each list."""
    found: list[Operand] = []
    for name, value in values.items():
        parts = elements(value) or (value,)
        for part in parts[:most]:
            tensor = part.tensor if isinstance(part, Unknown) else part
            if isinstance(tensor, TensorValue):
                found.append(Operand(name, tensor, tensor.layout))
    return found


def operand_number(values: Mapping[str, Value], first: str, name: str) -> int:
    """Number of the operand of this name in values, those from `first` on counted."""
    names = list(values)
    before = {key: values[key] for key in names[names.index(first) : names.index(name)]}
    return len(operands_in(before))


def by_position(call: Call) -> dict[str, Value]:
    """Arguments of a call by position or by name; the receiver, if there is one, first."""
    given: dict[str, Value] = {} if call.receiver is None else {"self": call.receiver}
    given |= {str(position): value for position, value in enumerate(call.arguments.positional)}
    return given | call.arguments.keywords


def trace(call: Call, made: Made, source: Value | None, producer: Value | None = None) -> Made:
    """Record the tensor and layer of origin in a result, and return it."""
    if isinstance(made, TensorValue) and isinstance(source, TensorValue) and made is not source:
        kept(call.name.rpartition(".")[2], source, made)
    for part in elements(made) or (made,):
        if (
            isinstance(part, TensorValue)
            and part.origin is not None
            and part.origin.place.node is call.place.node
        ):
            step = part.origin
            if step.source is None and isinstance(source, TensorValue) and source.origin is not step:
                step.source = source.origin
            if step.producer is None:
                step.producer = producer
    return made
