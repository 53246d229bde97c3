"""Rehearsals: runs of a loop's body in the state of a later iteration, without events or lasting changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shapefix.interpreter.carried import LaterChanges, LoopCarried
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.journal import Changes
from shapefix.interpreter.silent_runs import rehearsal
from shapefix.tensors.symbols import next_serial

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
        with rehearsal(ev) as returned:
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
    with rehearsal(ev):
        run()
    ev.journal.undo()
