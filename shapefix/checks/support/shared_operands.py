"""Errors of one tensor or of one call: the first one is the cause of the others."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from shapefix.checks.context import CheckContext
from shapefix.checks.support.syntax import enclosing_function
from shapefix.diagnostics import Diagnostic
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.tensor_values import TensorValue


def with_shared_operands(context: CheckContext, found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Give errors of a tensor the cause of the first error of the same tensor in the same run.

    A wrong size raises wherever the tensor is used, and the first use ends the run. The same holds for all
    arguments of one call of a function, and in one call of a model for tensors with unknown sizes: those
    after the first error are guesses.
    """
    first: dict[Hashable, Diagnostic] = {}
    linked: dict[int, Diagnostic] = {}
    for index in sorted(range(len(found)), key=lambda index: found[index].moment):
        finding, event = found[index], context.events[found[index].moment]
        if not isinstance(event, OpRejected) or finding.follows is not None or finding.habit:
            continue
        keys, model = list(_shared(event)), _call_of_model(event)
        asked = keys if _has_known_sizes(event) else [*keys, model]
        earlier = next((first[key] for key in asked if key in first), None)
        if earlier is None:
            for key in (*keys, model):
                first.setdefault(key, finding)
        elif earlier.span != finding.span:
            linked[index] = replace(finding, follows=earlier.cause)
    return [linked.get(index, each) for index, each in enumerate(found)]


def _shared(event: OpRejected) -> Iterator[Hashable]:
    """Yield the tensors of an error within its run; and the call, if it passes on a wrong argument.

    The sizes of a layer may be wrong instead of those of an argument, so layers are no part of the second.
    """
    calls = tuple(id(place.node) for place in event.calls)
    for operand in event.operands:
        yield calls[:1], id(operand.tensor.storage)
    if calls and event.layer is None and all(_is_argument(each.tensor, event) for each in event.operands):
        yield "arguments", calls


def _call_of_model(event: OpRejected) -> Hashable:
    """Return the call of a model with an error in its forward or below; that of the error otherwise."""
    places = [*event.calls, event.place]
    for number in range(1, len(places)):
        function = enclosing_function(places[number])
        if function is not None and function.name.value == "forward":
            return "model", tuple(id(place.node) for place in places[:number])
    return "model", id(event)


def _has_known_sizes(event: OpRejected) -> bool:
    layouts = [operand.tensor.layout for operand in event.operands]
    return all(
        layout is not None and all(size.value is not None for size in layout.sizes) for layout in layouts
    )


def _is_argument(tensor: TensorValue, event: OpRejected) -> bool:
    """Whether the sizes of a tensor come from the callers of the running function."""
    step = tensor.origin
    while step is not None and step.function is event.within:
        source = step.source
        if source is None or source.layout is None or step.layout is None:
            return False
        if source.layout.sizes != step.layout.sizes:
            return False
        step = source
    return step is not None
