"""Rehearsals: runs of a loop's body in the state of a later iteration, without events or lasting changes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from shapefix.interpreter.carried import LaterChanges, LoopCarried
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.journal import Changes
from shapefix.interpreter.state import DomainState
from shapefix.interpreter.values import Value
from shapefix.tensors.symbols import next_serial

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

MOST = 3
"""Maximum number of later iterations that are run for what they change."""


def find_later_changes(
    ev: Evaluator,
    carried: LoopCarried,
    first: Sequence[Changes],
    start: int,
    run: Callable[[], Sequence[Changes]],
) -> None:
    """Run later iterations, each from the state of the earlier ones, to find all their changes.

    A branch that the first iteration did not take, in any function called by the loop, may write more than it
    did; functions may copy values that it changed. first are the changes on the paths of the first iteration,
    begun at the step start; run returns those of one more, and undoes them.
    """
    if not first or ev.rehearsals:
        return
    if ev.rehearsed > ev.rehearsal_allowance:
        ev.reach_limit()
        carried.give_up(first)
        return
    later: Sequence[Changes] = ()
    for number in range(MOST):
        ev.journal.begin()
        ev.journal.apply(first)
        if number == 0 and (not carried.is_seen_elsewhere(ev, start) or carried.begins_alike(ev, start)):
            ev.journal.undo()
            return
        carried.begin_later(ev)
        begun = next_serial()
        with _rehearsal(ev) as returned:
            later = run()
        carried.note_returns(ev, returned)
        changed = carried.note_later(ev, later, begun)
        ev.journal.undo()
        if changed is LaterChanges.NONE or (changed is LaterChanges.OF_OTHERS and number > 0):
            return
    carried.give_up([*first, *later])


def rehearse_next_pass(ev: Evaluator, first: Sequence[Changes], run: Callable[[], object]) -> None:
    """Run one more pass of a loop from the state after the first one, within the limit of all rehearsals."""
    if ev.rehearsals or ev.rehearsed > ev.rehearsal_allowance:
        return
    ev.journal.begin()
    ev.journal.apply(first)
    with _rehearsal(ev):
        run()
    ev.journal.undo()


@contextmanager
def _rehearsal(ev: Evaluator) -> Iterator[list[Value]]:
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
