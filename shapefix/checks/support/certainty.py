"""What a finding takes for granted on the way of the run to it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Diagnostic
from shapefix.interpreter.evaluator import Guard, Way
from shapefix.interpreter.events import Event, OperationEvent
from shapefix.interpreter.modules import Place, children, dotted_name, nodes


def assumption(event: Event, found: Diagnostic, context: CheckContext) -> str:
    """Return what a finding takes for granted, in words; "" if the code itself says all of it.

    Only a claim about the values at a place can be wrong for another way to it.
    """
    if not event.is_of_values:
        return ""
    way = context.way(event)
    guard = next(_deciding(way), None)
    if guard is not None:
        return f"the run gets past `{abbreviate(guard.test.code)}` with these values"
    if way.uncalled is not None:
        return f"`{way.uncalled.qualified}` is called with values for which this holds"
    if isinstance(event, OperationEvent) and found.condition is not None and not found.condition.constant:
        return f"a run has sizes with {found.condition.text}"
    return ""


def _deciding(way: Way) -> Iterator[Guard]:
    """Yield the conditions that may depend on the values of the finding.

    Those of the same function may. One around a call only may if it reads what the call passes on: others
    choose what the program does, such as `if args.train:`.
    """
    for guard in way.guards:
        if _is_periodic(guard.test) or _is_about_the_machine(guard.test):
            continue
        if guard.is_own or not set(_names(guard.test.node)).isdisjoint(_names(guard.at.node)):
            yield guard


def _is_periodic(test: Place) -> bool:
    """Whether a condition only counts passes: `step % 100 == 0`."""
    return any(isinstance(node, cst.Modulo) for node in nodes(test.node))


def _is_about_the_machine(test: Place) -> bool:
    return any(
        isinstance(node, cst.Attribute) and node.attr.value == "is_available" for node in nodes(test.node)
    )


_OF_TENSORS = frozenset({"shape", "ndim", "dtype", "device", "is_cuda", "requires_grad"})


def _names(node: cst.CSTNode) -> Iterator[str]:
    """Yield the names and chains of attributes read by code: `x` for `x.dim()` and `len(x.shape)`, `self.mode`."""
    if isinstance(node, cst.Call):
        parts: tuple[cst.CSTNode, ...] = tuple(each.value for each in node.args)
        if isinstance(node.func, cst.Attribute):
            parts = (node.func.value, *parts)
    elif isinstance(node, cst.Attribute) and node.attr.value in _OF_TENSORS:
        parts = (node.value,)
    elif name := dotted_name(node):
        yield name
        return
    else:
        parts = tuple(children(node))
    for part in parts:
        yield from _names(part)
