"""Errors of one tensor: the first one is the cause of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shapefix.checks.context import CheckContext
from shapefix.diagnostics import Diagnostic
from shapefix.interpreter.events import OpRejected


def with_shared_operands(context: CheckContext, found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Give errors of a tensor the cause of the first error of the same tensor in the same run.

    A wrong size raises wherever the tensor is used, and the first use ends the run.
    """
    first: dict[tuple[int, int], Diagnostic] = {}
    linked: dict[int, Diagnostic] = {}
    for index in sorted(range(len(found)), key=lambda index: found[index].moment):
        finding, event = found[index], context.events[found[index].moment]
        if not isinstance(event, OpRejected) or finding.follows is not None or finding.habit:
            continue
        entry = id(event.calls[0].node) if event.calls else 0
        keys = [(entry, id(operand.tensor.storage)) for operand in event.operands]
        earlier = next((first[key] for key in keys if key in first), None)
        if earlier is None:
            for key in keys:
                first[key] = finding
        elif earlier.span != finding.span:
            linked[index] = replace(finding, follows=earlier.cause)
    return [linked.get(index, each) for index, each in enumerate(found)]
