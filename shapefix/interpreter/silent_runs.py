"""Silent runs of code: without events, and undone afterwards."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.state import DomainState
from shapefix.interpreter.values import Value

_COUNTERS = (
    "bounded",
    "bounded_at",
    "calls",
    "entry_point",
    "entry_points",
    "last_call",
    "refusals",
    "refused",
    "steps",
    "unfollowed",
)
_COLLECTIONS = ("replaced", "symbol_names", "type_checked", "visited")


@contextmanager
def rehearsal(ev: Evaluator) -> Iterator[list[Value]]:
    """Run code without events; afterwards the run goes on as if it had not happened.

    Writes through the journal are left to the caller. Yields a list, at the end with the values that the code
    returned from the running function.
    """
    returned: list[Value] = []
    counters = {name: getattr(ev, name) for name in _COUNTERS}
    collections = {name: getattr(ev, name) for name in _COLLECTIONS}
    for name, collection in collections.items():
        setattr(ev, name, copy.copy(collection))
    frame, state = ev.frame, ev.state
    dimensions = frame.dimensions
    lists: tuple[list[Any], ...] = (frame.returns, frame.exits, frame.yields, frame.tests)
    lengths = [len(each) for each in lists]
    ev.state = _copied(state)
    frame.dimensions = dict(dimensions)
    ev.silenced += 1
    ev.rehearsals += 1
    try:
        yield returned
    finally:
        returned += frame.returns[lengths[0] :]
        ev.rehearsals -= 1
        ev.silenced -= 1
        frame.dimensions = dimensions
        ev.state = state
        for each, length in zip(lists, lengths, strict=True):
            del each[length:]
        ev.rehearsed += ev.steps - counters["steps"]
        for name, value in (*counters.items(), *collections.items()):
            setattr(ev, name, value)


def _copied(state: DomainState) -> DomainState:
    """Copy the state objects and their collections, so that the originals keep theirs."""
    copied = DomainState()
    for kind, held in state.items():
        copied[kind] = again = copy.copy(held)
        for name, value in _collections(held):
            setattr(again, name, value)
    return copied


def _collections(held: Any) -> Iterator[tuple[str, Any]]:
    for name in getattr(held, "__slots__", ()) or vars(held):
        value = getattr(held, name)
        if isinstance(value, list):
            yield name, [list(item) if isinstance(item, list) else item for item in value]
        elif isinstance(value, (dict, set)):
            yield name, copy.copy(value)
