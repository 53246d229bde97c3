"""Statements with a body: branches, loops, try and with."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from shapefix.interpreter.evaluator import Evaluator, Flow, Loop, statement
from shapefix.interpreter.iteration import each, iterate
from shapefix.interpreter.scopes import UNCHANGED, Changes
from shapefix.interpreter.targets import bind
from shapefix.interpreter.truth import truth
from shapefix.interpreter.values import LibraryObject, Reference, Unknown, Value, elements

UNROLLED = 8
"""Loops over at most this many known items run item by item."""


@statement(cst.If)
def branch(ev: Evaluator, node: cst.If) -> int:
    known = truth(ev.evaluate(node.test))
    if known is True:
        return ev.run(node.body)
    orelse = node.orelse
    if known is False:
        return _otherwise(ev, orelse)
    ev.frame.undecided += 1
    try:
        return _both(ev, node, orelse)
    finally:
        ev.frame.undecided -= 1


def _both(ev: Evaluator, node: cst.If, orelse: cst.If | cst.Else | None) -> int:
    """Run both branches, and go on with what they agree on."""
    ev.journal.begin()
    first = ev.run(node.body)
    one = ev.journal.undo()
    if orelse is None:
        ev.journal.apply([one, UNCHANGED] if first == Flow.FALLS_THROUGH else [UNCHANGED])
        return Flow.FALLS_THROUGH
    ev.journal.begin()
    second = _otherwise(ev, orelse)
    other = ev.journal.undo()
    paths = [path for path, end in ((one, first), (other, second)) if end == Flow.FALLS_THROUGH]
    if not paths:
        return Flow.LEAVES
    ev.journal.apply(paths)
    return Flow.FALLS_THROUGH


def _otherwise(ev: Evaluator, orelse: cst.If | cst.Else | None) -> int:
    if orelse is None:
        return Flow.FALLS_THROUGH
    return ev.execute(orelse) if isinstance(orelse, cst.If) else ev.run(orelse.body)


@statement(cst.For)
def for_loop(ev: Evaluator, node: cst.For) -> int:
    iterable = iterate(ev, ev.evaluate(node.iter), node.iter)
    items = elements(iterable)
    if items is not None and len(items) <= UNROLLED:
        return _unrolled(ev, node, items)

    def run() -> int:
        bind(ev, node.target, each(ev, iterable))
        return ev.run(node.body)

    _repeat(ev, run)
    return ev.run(node.orelse.body) if node.orelse is not None else Flow.FALLS_THROUGH


def _unrolled(ev: Evaluator, node: cst.For, items: tuple[Value, ...]) -> int:
    depth = ev.journal.depth
    ev.journal.begin()
    loop = Loop(depth)
    ev.frame.loops.append(loop)
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
    ev.frame.loops.pop()
    breaks = loop.breaks
    if not breaks:
        if stopped:
            ev.journal.undo()
            return Flow.LEAVES
        ev.journal.keep()
    else:
        end_state = ev.journal.undo()
        ev.journal.apply(breaks if stopped else [*breaks, end_state])
    if not stopped and node.orelse is not None:
        return ev.run(node.orelse.body)
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
    endless = known is True

    def run() -> int:
        return ev.run(node.body)

    broke = _repeat(ev, run, at_least_once=endless)
    if endless and not broke:
        return Flow.LEAVES
    return ev.run(node.orelse.body) if node.orelse is not None else Flow.FALLS_THROUGH


def _repeat(ev: Evaluator, run: Callable[[], int], at_least_once: bool = False) -> bool:
    """Run a loop's body once, in the state of its first iteration; what it changes is then only half known.

    Returns whether a break was seen. What the first iteration does does happen, so what is found in it holds.
    """
    depth = ev.journal.depth
    ev.journal.begin()
    loop = Loop(depth)
    ev.frame.loops.append(loop)
    end = run()
    ev.frame.loops.pop()
    state = ev.journal.undo()
    paths = [] if at_least_once else [UNCHANGED]
    paths += loop.breaks + loop.continues
    if end == Flow.FALLS_THROUGH:
        paths.append(state)
    if paths:
        ev.journal.apply(paths)
    return bool(loop.breaks)


@statement(cst.Try, cst.TryStar)
def try_(ev: Evaluator, node: cst.Try | cst.TryStar) -> int:
    ev.journal.begin()
    expected = _expects_runtime_error(ev, node)
    ev.muted += expected
    body = ev.run(node.body)
    ev.muted -= expected
    if body == Flow.FALLS_THROUGH and node.orelse is not None:
        body = ev.run(node.orelse.body)
    after = ev.journal.undo()
    paths = [after] if body == Flow.FALLS_THROUGH else []
    for handler in node.handlers:
        ev.journal.begin()
        # The exception may have come at any point of the body.
        ev.journal.apply([UNCHANGED, after])
        if handler.name is not None:
            bind(ev, handler.name.name, Unknown("exception"))
        end = ev.run(handler.body)
        state = ev.journal.undo()
        if end == Flow.FALLS_THROUGH:
            paths.append(state)
    if paths:
        ev.journal.apply(paths)
    if node.finalbody is not None and ev.run(node.finalbody.body) == Flow.LEAVES:
        return Flow.LEAVES
    return Flow.FALLS_THROUGH if paths else Flow.LEAVES


def _expects_runtime_error(ev: Evaluator, node: cst.Try | cst.TryStar) -> bool:
    """Whether one single line is tried for a RuntimeError: whoever does so knows that it may come."""
    body = node.body.body
    if len(body) != 1 or not isinstance(body[0], cst.SimpleStatementLine):
        return False
    kinds = [ev.evaluate(handler.type) for handler in node.handlers if handler.type is not None]
    return any(isinstance(kind, Reference) and kind.name == "builtins.RuntimeError" for kind in kinds)


@statement(cst.With)
def with_(ev: Evaluator, node: cst.With) -> int:
    failing = False
    without_gradients = 0
    for entry in node.items:
        value = ev.evaluate(entry.item)
        failing = failing or ev.library.expects_failure(value) or _asserts_raises(entry.item)
        without_gradients += ev.library.disables_gradients(value)
        if entry.asname is not None:
            entered = value if isinstance(value, LibraryObject) else Unknown()
            bind(ev, entry.asname.name, entered)
    ev.muted += failing
    ev.without_gradients += without_gradients
    end = ev.run(node.body)
    ev.muted -= failing
    ev.without_gradients -= without_gradients
    # What raises as expected does not leave the block.
    return Flow.FALLS_THROUGH if failing else end


def _asserts_raises(item: cst.BaseExpression) -> bool:
    """`self.assertRaises(...)`, the way that unittest expects a failure."""
    return (
        isinstance(item, cst.Call)
        and isinstance(item.func, cst.Attribute)
        and item.func.attr.value in ("assertRaises", "assertRaisesRegex")
    )


@statement(cst.Match)
def match(ev: Evaluator, node: cst.Match) -> int:
    ev.evaluate(node.subject)
    paths = [UNCHANGED]
    for case in node.cases:
        ev.journal.begin()
        end = ev.run(case.body)
        state = ev.journal.undo()
        if end == Flow.FALLS_THROUGH:
            paths.append(state)
    ev.journal.apply(paths)
    return Flow.FALLS_THROUGH
