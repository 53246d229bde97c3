"""Unchecked places of a run: unknown datasets, batches and models, and limits of the analysis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.describe import describe
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Unchecked
from shapefix.domains.declared_sizes import DeclarationContradicted
from shapefix.domains.lost_values import LostKind, ValueLost
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.rulebook.plugins import problems

SIGNATURE = "signature"
"""The kind of the places where declared sizes are wrong, before the name of the function."""
LIMIT = "limit"
"""The kind of the places where the bound of work was hit."""
_LONGEST_CODE = 40


def stopped_in(path: str, resource: str) -> Unchecked:
    """Say that the analysis of the file at path ran out of a resource: time or memory."""
    return Unchecked(
        path, f"the limit of analysis ({resource}) was reached; not everything was checked", kind=LIMIT
    )


def unchecked_places(path: str, ev: Evaluator, stopped: str = "") -> Iterator[Unchecked]:
    """Yield the unchecked places in a run of the file at path, each cause once.

    stopped is the resource that the analysis ran out of.
    """
    yield from _lost(ev.events)
    yield from _contradicted(ev)
    if stopped:
        yield stopped_in(path, stopped)
    elif ev.bounded:
        calls = f"{ev.bounded} call{'' if ev.bounded == 1 else 's'}"
        message = f"the limit of analysis was reached; {calls} not followed"
        yield (
            Unchecked(path, message, kind=LIMIT)
            if ev.bounded_at is None
            else _at(ev.bounded_at, message, LIMIT)
        )


def _lost(events: Iterable[Event]) -> Iterator[Unchecked]:
    lost = [event for event in events if isinstance(event, ValueLost)]
    datasets = [event for event in lost if event.kind is LostKind.DATASET]
    causes: set[tuple[LostKind, object, object]] = set()
    for event in lost:
        if event.kind is LostKind.BATCH and datasets:
            # The batches are unknown because their dataset is.
            continue
        cause = event.origin or event.place
        key = (event.kind, cause.module.path, cause.node)
        if key not in causes:
            causes.add(key)
            yield _explain(event, cause)


def plugin_problems() -> Iterator[Unchecked]:
    """Yield the problems of plugins in this process."""
    for problem in problems():
        yield Unchecked(problem.path, problem.message, problem.row, None, "plugin")


def _contradicted(ev: Evaluator) -> Iterator[Unchecked]:
    """Yield the places with wrong declared sizes."""
    context = CheckContext(ev.events, ev.symbol_names)
    for event in ev.events:
        if isinstance(event, DeclarationContradicted):
            what = f"`{event.parameter}`" if event.parameter else "the result"
            message = (
                f"the signature of `{event.name}` declares {what} as {event.declared}, "
                f"but it is {describe(event.tensor, context)} here"
            )
            yield _at(event.place, message, f"{SIGNATURE} {event.name}")


def _explain(event: ValueLost, cause: Place) -> Unchecked:
    source = "" if event.origin is None else f" from {_called(event.origin)}"
    match event.kind:
        case LostKind.DATASET:
            dataset = f"dataset{source}" if source else f"dataset of this `{event.user}`"
            what = f"the {dataset} is unknown, so its batches were not checked"
        case LostKind.MODEL:
            what = f"the model{source or ' called here'} is unknown, so its calls were not checked"
        case LostKind.BATCH:
            user = f"`{abbreviate(event.user, _LONGEST_CODE)}`"
            what = f"the batch{source} passed to {user} is unknown, so that call was not checked"
    return _at(cause, what, event.kind)


def _called(origin: Place) -> str:
    node = origin.node
    code = origin.module.code(node.func if isinstance(node, cst.Call) else node)
    return f"`{abbreviate(code, _LONGEST_CODE)}`"


def _at(place: Place, message: str, kind: str) -> Unchecked:
    span = place.span
    return Unchecked(span.path, message, span.row, span.column, kind)
