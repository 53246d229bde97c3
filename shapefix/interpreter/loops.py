"""Loops: item by item where the items are known and few, else one iteration that stands for all."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from shapefix.interpreter.attempts import EnclosingLoop
from shapefix.interpreter.axes import axes_of, now
from shapefix.interpreter.carried import LoopCarried, may_break
from shapefix.interpreter.containers import RaggedDim, elements
from shapefix.interpreter.evaluator import Evaluator, Flow, statement
from shapefix.interpreter.iteration import each, iterate, unrolled
from shapefix.interpreter.scopes import UNCHANGED, Changes
from shapefix.interpreter.targets import bind
from shapefix.interpreter.truth import truth
from shapefix.interpreter.values import (
    NONE,
    ClassValue,
    Constant,
    FunctionValue,
    InstanceValue,
    LibraryObject,
    Reference,
    Value,
    is_text,
)


@statement(cst.For)
def for_loop(ev: Evaluator, node: cst.For) -> int:
    asked = ev.loaders
    iterable = iterate(ev, ev.evaluate(node.iter), node.iter)
    around = EnclosingLoop(node, ev.loaders > asked, _are_settings(iterable))
    items = unrolled(ev, iterable)
    if items is not None:
        return _unrolled(ev, node, items, around)

    def run() -> int:
        bind(ev, node.target, each(ev, iterable))
        return ev.run(node.body)

    return _repeat(ev, around, run, axes_of(iterable))


_SETTINGS = (Constant, Reference, ClassValue, FunctionValue, InstanceValue, LibraryObject)


def _are_settings(iterable: Value) -> bool:
    """Whether the items are stated one by one and are no data, but numbers, texts, classes or models."""
    items = elements(iterable)
    if not items:
        return False
    numbers = [item.value for item in items if isinstance(item, Constant)]
    return numbers != [*range(len(items))] and all(map(_is_setting, items))


def _is_setting(item: Value) -> bool:
    parts = elements(item)
    if parts is None:
        return isinstance(item, _SETTINGS)
    return bool(parts) and (is_text(parts[0]) or all(map(_is_setting, parts)))


def _unrolled(ev: Evaluator, node: cst.For, items: tuple[Value, ...], around: EnclosingLoop) -> int:
    depth = ev.journal.depth
    ev.journal.begin()
    loop = ev.open_loop(around, depth)
    stopped = False
    for item in items:
        bind(ev, node.target, item)
        end = ev.run(node.body)
        if loop.continues:
            paths = loop.continues
            loop.continues = []
            if end == Flow.FALLS_THROUGH:
                paths.append(ev.journal.since(depth))
            _rewind(ev, paths)
        elif end == Flow.LEAVES:
            stopped = True
            break
    ev.close_loop()
    paths = loop.breaks
    if not stopped and (node.orelse is None or ev.run(node.orelse.body) == Flow.FALLS_THROUGH):
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
    """Restart the loop's branch from the join of the states in which an iteration ended."""
    ev.journal.undo()
    ev.journal.begin()
    ev.journal.apply(paths)


@statement(cst.While)
def while_loop(ev: Evaluator, node: cst.While) -> int:
    known = truth(ev.evaluate(node.test))
    if known is False:
        return ev.run(node.orelse.body) if node.orelse is not None else Flow.FALLS_THROUGH
    # `while i < n` may hold now and not later.
    endless = known is True and isinstance(node.test, (cst.Name, cst.Integer)) and _is_literal(node.test)
    around = EnclosingLoop(node, over_batches=False, of_settings=False)
    return _repeat(
        ev, around, lambda: ev.run(node.body), axes_of(NONE), at_least_once=known is True, endless=endless
    )


def _is_literal(test: cst.Name | cst.Integer) -> bool:
    return isinstance(test, cst.Integer) or test.value == "True"


def _repeat(
    ev: Evaluator,
    around: EnclosingLoop,
    run: Callable[[], int],
    axes: frozenset[RaggedDim],
    at_least_once: bool = False,
    endless: bool = False,
) -> int:
    """Run a loop's body once, in the state of its first iteration; what it changes is then only half known.

    What the first iteration does does happen, so what is found in it holds. Later iterations start from what
    earlier ones changed: everything that depends on that is forgotten when the loop is over.
    """
    node = around.node
    depth = ev.journal.depth
    since = now()
    ev.journal.begin()
    loop = ev.open_loop(around, depth)
    end = run()
    ev.close_loop()
    state = ev.journal.undo()
    iterated = [*loop.continues, state] if end == Flow.FALLS_THROUGH else loop.continues
    paths = iterated if at_least_once else [UNCHANGED, *iterated]
    carried = LoopCarried(ev, node, [*loop.breaks, *iterated], axes, since)
    left: list[Changes] = []
    if paths and not endless:
        ev.journal.begin()
        ev.journal.apply(paths)
        carried.forget(ev)
        if node.orelse is None or ev.run(node.orelse.body) == Flow.FALLS_THROUGH:
            left.append(ev.journal.since(depth))
        ev.journal.undo()
    if loop.breaks or ((endless or node.orelse is not None) and ev.frame.module.once(node, may_break)):
        # A later iteration may break, with what the earlier ones have done.
        left += [*loop.breaks, *iterated]
    if not left:
        return Flow.LEAVES
    ev.journal.apply(left)
    carried.forget(ev)
    return Flow.FALLS_THROUGH
