"""Loops: item by item for few known items, else one iteration for all."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from shapefix.interpreter import hooks
from shapefix.interpreter.appends import lengths_after, set_lengths
from shapefix.interpreter.carried import LoopCarried
from shapefix.interpreter.carried_kinds import find_kept
from shapefix.interpreter.containers import RaggedDim
from shapefix.interpreter.evaluator import Evaluator, Flow, Loop, statement
from shapefix.interpreter.first_passes import counted_by_hand, first_numbers
from shapefix.interpreter.iteration import item_of_loop, iterate, unrolled
from shapefix.interpreter.journal import UNCHANGED, Changes, content
from shapefix.interpreter.loop_assignments import assignments, changes_iterated, may_break
from shapefix.interpreter.modules import target_names
from shapefix.interpreter.per_item_sizes import axes_of, now
from shapefix.interpreter.rehearsals import find_later_changes, rehearse_next_pass
from shapefix.interpreter.targets import bind
from shapefix.interpreter.truth import truth
from shapefix.interpreter.values import (
    NONE,
    Names,
    Value,
)


@statement(cst.For)
def for_loop(ev: Evaluator, node: cst.For) -> Flow:
    header = ev.steps
    iterable = iterate(ev, ev.evaluate(node.iter), node.iter)
    items = unrolled(ev, iterable, are_texts_alike=False)
    if items is not None and not ev.frame.module.once(node, changes_iterated):
        return _unrolled(ev, node, items, iterable, header)

    item = item_of_loop(ev, iterable, node)

    def run() -> Flow:
        bind(ev, node.target, item)
        return ev.run(node.body)

    return _repeat(ev, node, run, axes_of(iterable), iterable=iterable, header=header, item=item)


def _open_loop(
    ev: Evaluator, node: cst.For | cst.While, iterable: Value | None, header: int, depth: int
) -> Loop:
    loop = ev.open_loop(node, iterable, header, depth)
    if isinstance(node, cst.For):
        loop.bound = frozenset(target_names(node.target))
        first = first_numbers(ev, node)
        changed = {name for entry in ev.frame.module.once(node, assignments) for name in entry.targets}
        loop.first = {name: number for name, number in first.items() if name not in changed}
    for hook in hooks.begin_loop if iterable is not None else ():
        hook(ev, loop)
    return loop


def _unrolled(ev: Evaluator, node: cst.For, items: tuple[Value, ...], iterable: Value, header: int) -> Flow:
    depth = ev.journal.depth
    ev.journal.begin()
    loop = _open_loop(ev, node, iterable, header, depth)
    stopped = False
    around = sum(len(frame.loops) for frame in ev.frames) - 1
    for item in items:
        ev.steps += around
        bind(ev, node.target, item)
        end = ev.run(node.body)
        if loop.continues:
            paths = loop.continues
            loop.continues = []
            if end is Flow.FALLS_THROUGH:
                paths.append(ev.journal.since(depth))
            _rewind(ev, paths)
        elif end is Flow.LEAVES:
            stopped = True
            break
    ev.close_loop()
    paths = loop.breaks
    if not stopped and (node.orelse is None or ev.run(node.orelse.body) is Flow.FALLS_THROUGH):
        if not paths:
            ev.journal.keep()
            return Flow.FALLS_THROUGH
        paths.append(ev.journal.since(depth))
    ev.journal.undo()
    if not paths:
        return Flow.LEAVES
    ev.journal.apply(paths)
    return Flow.FALLS_THROUGH


def _rewind(ev: Evaluator, paths: list[Changes]) -> None:
    """Restart the loop's branch from the join of the states at the ends of an iteration."""
    ev.journal.undo()
    ev.journal.begin()
    ev.journal.apply(paths)


@statement(cst.While)
def while_loop(ev: Evaluator, node: cst.While) -> Flow:
    known = truth(ev.evaluate(node.test))
    if known is False:
        return ev.run(node.orelse.body) if node.orelse is not None else Flow.FALLS_THROUGH
    # `while i < n` may hold now and not later.
    endless = known is True and isinstance(node.test, (cst.Name, cst.Integer)) and _is_literal(node.test)
    return _repeat(
        ev, node, lambda: ev.run(node.body), axes_of(NONE), at_least_once=known is True, endless=endless
    )


def _is_literal(test: cst.Name | cst.Integer) -> bool:
    return isinstance(test, cst.Integer) or test.value == "True"


def _repeat(
    ev: Evaluator,
    node: cst.For | cst.While,
    run: Callable[[], Flow],
    axes: frozenset[RaggedDim],
    *,
    iterable: Value | None = None,
    header: int = 0,
    item: Value | None = None,
    at_least_once: bool = False,
    endless: bool = False,
) -> Flow:
    """Run a loop's body once, in the state of its first iteration; its changes are only partly known.

    The first iteration does happen, so findings in it hold. Later iterations start from the state that
    earlier ones changed: every value that depends on it is forgotten after the loop.
    """
    depth = ev.journal.depth
    since = now()
    start = ev.steps
    filled = lengths_after(ev, node, iterable)
    ev.journal.begin()
    loop = _open_loop(ev, node, iterable, header, depth)
    loop.counted = counted_by_hand(ev, node)
    end = run()
    ev.close_loop()
    state = ev.journal.undo()
    if ev.rehearsals:
        # Each write is joined again by every loop around this one.
        ev.rehearsed += sum(len(path.written) for path in (state, *loop.breaks, *loop.continues))

    def later() -> list[Changes]:
        again = ev.open_loop(node, None, ev.steps, ev.journal.depth)
        ev.journal.begin()
        end = run()
        ev.close_loop()
        state = ev.journal.undo()
        return [*again.breaks, *again.continues, *([state] if end is Flow.FALLS_THROUGH else ())]

    if end is Flow.FALLS_THROUGH and not loop.continues:
        changes = [
            (
                key if isinstance(container, Names) else f".{key}" if isinstance(key, str) else ".",
                content(container, key),
                after,
            )
            for container, key, after in state.written.values()
        ]
        for hook in hooks.end_first_pass:
            hook(ev, loop, start, changes, lambda: rehearse_next_pass(ev, [state], later))
    iterated = [*loop.continues, state] if end is Flow.FALLS_THROUGH else loop.continues
    paths = iterated if at_least_once else [UNCHANGED, *iterated]
    carried = LoopCarried(ev, node, [*loop.breaks, *iterated], axes, since, item)

    find_later_changes(ev, carried, iterated, start, later)
    carried.kept = find_kept(ev, node, carried, iterated, later)
    left: list[Changes] = []
    if paths and not endless:
        ev.journal.begin()
        ev.journal.apply(paths)
        carried.forget(ev)
        if node.orelse is None or ev.run(node.orelse.body) is Flow.FALLS_THROUGH:
            left.append(ev.journal.since(depth))
        ev.journal.undo()
    if loop.breaks or ((endless or node.orelse is not None) and ev.frame.module.once(node, may_break)):
        # A later iteration may break, after the changes of earlier ones.
        left += [*loop.breaks, *iterated]
    if not left:
        return Flow.LEAVES
    ev.journal.apply(left)
    carried.forget(ev)
    set_lengths(ev, filled)
    for ended in hooks.end_loop:
        ended(ev, loop)
    return Flow.FALLS_THROUGH
